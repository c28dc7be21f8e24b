// One part of a page whose trees and answer are there already, instead of being read and made.

#ifndef PLUMBLINE_REPORT_PAGE_PART_H_
#define PLUMBLINE_REPORT_PAGE_PART_H_

#include <cstddef>
#include <string>
#include <vector>

#include "report/html_report.h"
#include "tree/read_tree.h"

namespace plumbline::report {

struct KnownPart {
  tree::ComparedTrees trees;        // as of tree::ReadTrees()
  std::vector<std::string> answer;  // lines
};

// As of html_report.h.
std::string HtmlPartData(const HtmlPart& part, KnownPart known, size_t most_bytes);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_PAGE_PART_H_
