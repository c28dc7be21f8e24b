#include "report/html_report.h"

#include <array>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "report/html_data.h"
#include "report/markup_text.h"

namespace plumbline::report {

// Contents of html/, embedded by cmake/embed.cmake.
extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;
extern const std::string_view kRowsJs;
extern const std::string_view kEvidenceJs;
extern const std::string_view kRanksJs;

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

// The page with what `write_data` puts into its data element.
Status WritePage(const std::string& path, const std::string& summary,
                 const std::function<Status(AtomicFile&)>& write_data) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  std::string plain;
  AppendHtmlText(summary, plain);
  const auto texts = [&](std::initializer_list<std::string_view> contents) {
    return [&file, list = std::vector(contents)]() -> Status {
      for (const std::string_view content : list) PL_TRY(file.Write(content));
      return {};
    };
  };
  const std::array<std::pair<std::string_view, std::function<Status()>>, 4> fields = {{
      {"@STYLE@", texts({kPageCss})},
      {"@SUMMARY@", texts({plain})},
      {"@DATA@", [&] { return write_data(file); }},
      {"@SCRIPT@", texts({kPageJs, kRowsJs, kRanksJs, kEvidenceJs})},
  }};
  // The fields stand in the page in this order.
  std::string_view rest = kPageHtml;
  for (const auto& [name, write] : fields) {
    const size_t at = rest.find(name);
    PL_TRY(file.Write(rest.substr(0, at)));
    PL_TRY(write());
    rest.remove_prefix(at + name.size());
  }
  PL_TRY(file.Write(rest));
  return file.Commit(false);
}

}  // namespace

Status WriteHtml(std::span<const HtmlPart> parts, const std::string& path) {
  return WritePage(path, PlainSummary(parts), [&](AtomicFile& file) -> Status {
    PL_TRY(file.Write(HtmlDataHead({})));
    for (size_t i = 0; i < parts.size(); ++i) {
      PL_TRY(file.Write(i > 0 ? ",\n" : ""));
      PL_TRY(file.Write(HtmlPartData(parts[i], kHtmlRows / parts.size())));
    }
    return file.Write(kHtmlDataEnd);
  });
}

Status WriteHtmlOverview(const HtmlOverview& overview, const std::string& path) {
  return WritePage(path, overview.text, [&](AtomicFile& file) -> Status {
    PL_TRY(file.Write(HtmlDataHead(overview.json)));
    for (size_t i = 0; i < overview.parts.size(); ++i) {
      PL_TRY_ASSIGN(const std::string part, ReadFile(overview.parts[i]));
      PL_TRY(file.Write(i > 0 ? ",\n" : ""));
      PL_TRY(file.Write(part));
    }
    return file.Write(kHtmlDataEnd);
  });
}

}  // namespace plumbline::report
