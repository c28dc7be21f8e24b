#include "report/html_report.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "report/markup_text.h"

namespace plumbline::report {

// Contents of html/, embedded by cmake/embed.cmake.
extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;
extern const std::string_view kRowsJs;
extern const std::string_view kEvidenceJs;

namespace {

// The answers of all parts, for readers without scripts.
std::string PlainSummary(std::span<const HtmlPart> parts) {
  std::string text;
  for (const HtmlPart& part : parts) {
    if (parts.size() > 1) text += part.label + ": ";
    text += SummaryText(*part.comparison);
  }
  return text;
}

}  // namespace

Status WriteHtml(std::span<const HtmlPart> parts, const std::string& path) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  std::string summary;
  AppendHtmlText(PlainSummary(parts), summary);
  const std::string data = HtmlData(parts);
  const std::array<std::pair<std::string_view, std::vector<std::string_view>>, 4> fields = {{
      {"@STYLE@", {kPageCss}},
      {"@SUMMARY@", {summary}},
      {"@DATA@", {data}},
      {"@SCRIPT@", {kPageJs, kRowsJs, kEvidenceJs}},
  }};
  // The fields stand in the page in this order.
  std::string_view rest = kPageHtml;
  for (const auto& [name, contents] : fields) {
    const size_t at = rest.find(name);
    PL_TRY(file.Write(rest.substr(0, at)));
    for (const std::string_view content : contents) PL_TRY(file.Write(content));
    rest.remove_prefix(at + name.size());
  }
  PL_TRY(file.Write(rest));
  return file.Commit(false);
}

}  // namespace plumbline::report
