// Pages in one HTML file that needs nothing else (docs/reference/compare.md, "HTML").

#ifndef PLUMBLINE_REPORT_HTML_REPORT_H_
#define PLUMBLINE_REPORT_HTML_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file/file.h"
#include "explain/sample_evidence.h"
#include "plumbline/compare.h"

namespace plumbline::report {

// Pages of other products, in their own style.

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

// The page of a comparison: that of `plumb view`, with its data inside.
//
// The data are lines "KIND LETTERS": the letters are the base64 (RFC 4648) of a raw deflate stream
// (RFC 1951) of one JSON document. First a line `page`, then for each part `part`, `tree`, `calls`,
// `rows` any number of times, `end`. Lists that belong together have one entry per node, or per
// call. Numbers that are NaN or infinite are the texts "nan", "inf", "-inf"; null: there is none.
//
// page   format ("plumbline page"), version (2), answer (its lines), overview (the machine form of
//        the answer over all ranks, or null), parts (how many)
// part   label; step, rank (or null); answer (lines as the command prints them); header (machine
//        form of the comparison without rows); next_config; reasons (code -> words); foreign
//        (indexes of frames of the first wrong call's stack that are not the user's); growth (at
//        most 600 points along all calls: [number of the call, error, explained, verdict], the
//        worst of its neighbours); evidence (elements of the tensors of the first wrong call, or
//        null); evidence_left_out
// tree   micro_steps; counts (nodes by level); notes; target and golden, each with the nodes that
//        the page holds in pre-order: names (golden: "" is the partner's), types (vis::NodeType),
//        parents (index; -1: the root), orders (of execution), micro_steps, levels (vis::Level; -1:
//        none; of the target alone), partners (index on the other side; -1: none; -2: left out),
//        flags (node_flag), hidden (children left out), total (nodes there are)
// calls  the calls of those nodes: numbers (in recorded order), target and golden (index of the
//        node; -1: none, or left out), verdicts (Verdict), flags (node_flag), rows (how many there
//        are), errors and explained (of the worst output), input_errors; stacks (index into lists;
//        -1: none); unmatched and pairings: [index of the call, index into texts]; texts; frames;
//        foreign (indexes of frames that are not the user's); lists (of indexes of frames,
//        innermost first); total (calls there are)
// rows   rows: [call, item (without the call's name: begins with a dot), role, verdict, reason,
//        error, explained, dtype and shape of target and golden, result, statistics of target and
//        of golden, metrics, notes as pairs of texts], where texts are indexes into texts, -1:
//        none. Statistics: max, min, mean, norm of a tensor, one value otherwise; behind "f"
//        numbers of single precision; 0: this side has no such value; 1: equal to the target's.
//        Metrics: those of the mode in the order of the machine form; eight digits, as errors have.
//        The lines begin with what matters most; a call's rows are not divided.
// end    what the parts hold, and of how much: rows, row_total, calls, call_total, nodes,
// node_total,
//        golden_nodes, golden_node_total

// One comparison of a page. Both pointers are borrowed; `evidence` may be null.
struct HtmlPart {
  std::string label;  // "rank 3"; shown when the page has several parts
  const Comparison* comparison = nullptr;
  const explain::Evidence* evidence = nullptr;
  std::optional<int64_t> step{}, rank{};
};

// What a page takes at most, and of it what is no data. Where there is more, each part keeps its
// share: the first wrong call, wrong calls and what is above them before the rest, as whole calls.
// The page says what it lacks.
inline constexpr size_t kHtmlBytes = 15000000, kHtmlFrameBytes = 1500000;
// Rows of all parts together, which a browser unpacks into its memory.
inline constexpr size_t kHtmlRows = 100000;
// The share of each of so many parts.
size_t HtmlShare(size_t parts);

// Writes the page. The bytes depend on the parts, and on what lies beside their recordings.
Status WriteHtml(std::span<const HtmlPart> parts, const std::string& path);
// Those of an answer but for the files that were written, whose names tell the time.
std::vector<std::string> AnswerLines(std::string_view summary);
// The lines of one part. Reads construct.json of both recordings.
std::string HtmlPartData(const HtmlPart& part, size_t most_bytes);

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
