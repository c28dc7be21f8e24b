// The report page: one HTML file that needs nothing else (docs/reference/compare.md, "HTML").

#ifndef PLUMBLINE_REPORT_HTML_REPORT_H_
#define PLUMBLINE_REPORT_HTML_REPORT_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file/file.h"
#include "explain/sample_evidence.h"
#include "plumbline/compare.h"

namespace plumbline::report {

// A page in this style; other products have their own.

// The parts of a page: in `html` stand "@STYLE@", "@SUMMARY@", "@DATA@" and "@SCRIPT@", in this
// order.
struct HtmlFrame {
  std::string_view html;
  std::vector<std::string_view> styles, scripts;
  std::string summary;  // for readers without scripts
};
// The style and the script with functions that every page uses: elements, numbers, tables, hints.
extern const std::string_view kPageCss;
extern const std::string_view kElementsJs;
// JSON that can stand inside a script element, where nothing may look like its end.
std::string InScript(std::string json);
// Writes the page with what `write_data` puts into its data element.
Status WriteHtmlFrame(const std::string& path, const HtmlFrame& frame,
                      const std::function<Status(AtomicFile&)>& write_data);

// The frame around the parts of a page's data; only the page's writers need it.

// What stands before the first part. `overview`: a JSON object, or empty.
std::string HtmlDataHead(std::string_view overview);
// What stands after the last one.
inline constexpr std::string_view kHtmlDataEnd = "]}";

// The texts of call stacks in a result: many calls come from one line of code and share one.

// Spells every distinct stack once, up to a number beyond which they would be a good part of the
// memory. `comparison` must outlive this. Thread-safe.
class StackTexts {
 public:
  using Frames = std::vector<std::string>;

  StackTexts(const Comparison& comparison, std::string (*spell)(const Frames&));

  // The text of a call's stack, or null: it has none, or it is not kept.
  [[nodiscard]] const std::string* Find(size_t call) const;
  // The same, spelled where it is not kept; empty: no stack.
  [[nodiscard]] std::string Of(size_t call) const;

 private:
  const Comparison& comparison_;
  std::string (*spell_)(const Frames&);
  std::unordered_map<const Frames*, std::string> texts_;
};

// The page, its parts, and what it says about all of them.

// One comparison of a page. Both pointers are borrowed; `evidence` may be null.
struct HtmlPart {
  std::string label;  // "rank 3"; shown when the page has several parts
  const Comparison* comparison = nullptr;
  const explain::Evidence* evidence = nullptr;
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
