// The page of `plumb view` and of the report in one file, as it was built from web/.

#ifndef PLUMBLINE_REPORT_PAGE_FILES_H_
#define PLUMBLINE_REPORT_PAGE_FILES_H_

#include <string_view>

namespace plumbline::report {

// `html` refers to the others as "./page.js", a module, and "./page.css": each by one element,
// alone on its line. All are UTF-8; `js` holds no "</script".
struct PageFiles {
  std::string_view html, js, css;
  std::string_view js_sha256, css_sha256;  // hexadecimal digits
};

// False where plumbline was compiled without Node.js: GetPageFiles() has nothing then.
bool IsPageBuilt();
PageFiles GetPageFiles();
// What to tell people when it was not.
inline constexpr std::string_view kPageNotBuilt =
    "the page was not built: when plumbline was compiled, Node.js 18 or newer with npm was "
    "missing; install both, then run tools/bootstrap.sh";

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_PAGE_FILES_H_
