// The csv file with the columns of the newest upstream release.

#ifndef PLUMBLINE_REPORT_NEWEST_TABLE_H_
#define PLUMBLINE_REPORT_NEWEST_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::report {

// Columns of upstream 26.2.0 for the comparison's mode, then `Verdict` and `Reason`.
std::vector<std::string_view> NewestHeader(const Comparison& comparison);

// Rows in the order of the comparison. The file appears complete or not at all.
Status WriteNewestCsv(const Comparison& comparison, const std::string& path);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_NEWEST_TABLE_H_
