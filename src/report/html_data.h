// The frame around the parts of a report page's data; only the page's writers need it.

#ifndef PLUMBLINE_REPORT_HTML_DATA_H_
#define PLUMBLINE_REPORT_HTML_DATA_H_

#include <string>
#include <string_view>

namespace plumbline::report {

// What stands before the first part. `overview`: a JSON object, or empty.
std::string HtmlDataHead(std::string_view overview);
// What stands after the last one.
inline constexpr std::string_view kHtmlDataEnd = "]}";

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_HTML_DATA_H_
