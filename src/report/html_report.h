// The report page: one HTML file that needs nothing else (docs/reference/compare.md, "HTML").

#ifndef PLUMBLINE_REPORT_HTML_REPORT_H_
#define PLUMBLINE_REPORT_HTML_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "plumbline/compare.h"
#include "report/evidence.h"

namespace plumbline::report {

// One comparison of a page. Both pointers are borrowed; `evidence` may be null.
struct HtmlPart {
  std::string label;  // "rank 3"; shown when the page has several parts
  const Comparison* comparison = nullptr;
  const Evidence* evidence = nullptr;
};

// Rows that a page may hold over all its parts. Above, each part keeps its share of the worst rows
// and of those of its first wrong call, in their order, and the page says so.
inline constexpr size_t kHtmlRows = 100000;

// Writes the page. The bytes depend on the parts alone.
Status WriteHtml(std::span<const HtmlPart> parts, const std::string& path);
// One part of the JSON inside the page, with at most `most_rows` rows and every "<" spelled \u003c.
// "rows" are arrays in this order: call, item (without the call's name), role, verdict, reason,
// error, explained error, dtype and shape of target and golden, result, statistics of target and
// golden (1: equal to target's), metrics, notes. Texts are indexes into the part's "texts"; -1 is
// no text.
std::string HtmlPartData(const HtmlPart& part, size_t most_rows);

// What such a page says about all of its parts.
struct HtmlOverview {
  std::string json;                // the machine form of the answer over all parts
  std::string text;                // for readers without scripts
  std::vector<std::string> parts;  // files that hold HtmlPartData(), read one after the other
};
// Errors: kIo, kNotFound of a part.
Status WriteHtmlOverview(const HtmlOverview& overview, const std::string& path);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_HTML_REPORT_H_
