// The files of the page of plumb view (web/), as they were built.

#ifndef PLUMBLINE_REPORT_PAGE_FILES_H_
#define PLUMBLINE_REPORT_PAGE_FILES_H_

#include <string_view>

namespace plumbline::report {

struct PageFile {
  std::string_view text;    // empty: this build has no page
  std::string_view sha256;  // of the text, in hexadecimal digits
};

// "page.js" or "page.css".
PageFile FindPageFile(std::string_view name);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_PAGE_FILES_H_
