#include "watch/curve_page.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "report/html_report.h"

namespace plumbline {

// Contents of html/, embedded by cmake/embed.cmake.
extern const std::string_view kTrendHtml;
extern const std::string_view kTrendCss;
extern const std::string_view kTrendJs;

Status WriteCurvePage(const std::string& path, const std::string& summary,
                      const std::string& data) {
  const report::HtmlFrame frame{kTrendHtml,
                                {report::kPageCss, kTrendCss},
                                {report::kElementsJs, kTrendJs},
                                summary};
  return report::WriteHtmlFrame(path, frame,
                                [&](AtomicFile& file) -> Status { return file.Write(data); });
}

void AppendCurvePoints(const std::vector<float>& points, std::string& out) {
  out += '[';
  for (const float point : points) {
    if (out.back() != '[') out += ',';
    if (std::isnan(point)) {
      out += "null";
    } else {
      fmt::format_to(std::back_inserter(out), "{:.4g}", point);
    }
  }
  out += ']';
}

}  // namespace plumbline
