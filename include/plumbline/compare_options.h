// What a comparison is asked to do: sides' names, rules, result files. See compare.h.

#ifndef PLUMBLINE_COMPARE_OPTIONS_H_
#define PLUMBLINE_COMPARE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// Files that say what is called otherwise on the golden side (docs/reference/compare-mappings.md).
// `data` and `layer` stand alone; `api` and `cell` go together.
struct MappingFiles {
  std::string data;                  // value by value; empty: none
  std::optional<std::string> api;    // MindSpore's APIs; empty text: the built-in table alone
  std::optional<std::string> cell;   // modules; empty text: "Cell" is read as "Module"
  std::optional<std::string> layer;  // parts of the model; empty text: by structure alone
};

// The result files that WriteComparison() can write (docs/reference/compare.md, "Result files").
enum class ReportFormat : uint8_t { kXlsx, kCsv, kJson, kJsonl, kHtml, kSqlite, kJunit, kSarif };
inline constexpr size_t kReportFormatCount = 8;
std::string_view ReportFormatName(ReportFormat format);  // "xlsx", "csv", ...; what --format takes
// Each once, in the order of the enumeration. kInvalidArgument names an unknown word.
Result<std::vector<ReportFormat>> ReportFormatsOf(const std::vector<std::string>& names);

struct CompareOptions {
  std::string output_dir = "./output";
  std::string suffix;  // between "compare_result" and the time in the names of the files
  // That time, in whose name files take the place of others; empty: now, and names that are free.
  std::string stamp;
  std::vector<ReportFormat> formats = {ReportFormat::kXlsx, ReportFormat::kCsv, ReportFormat::kJson,
                                       ReportFormat::kHtml};
  bool write_advice = false;  // upstream's advisor_<time>.txt
  bool fuzzy_match = false;   // ignore call numbers: k-th call pairs with k-th call
  MappingFiles mappings;
  // csv and xlsx have the columns of upstream's newest release (docs/reference/compare-newest.md).
  bool newest_columns = false;
  bool show_stack = true;  // column NPU_Stack_Info, when a stack.json is there
  std::string stack_path;  // empty: the stack.json beside the target's dump.json
  bool salvage = false;    // compare the complete records of a truncated dump
  int threads = 0;         // 0: one per core
  // A third run that is known to be right (a repetition, another thread count, a higher precision);
  // as far as it is from golden the target may be too. Empty: the model of noise alone.
  std::string noise_path;
  // Which tensors are changed before they are compared (docs/reference/compare-postprocess.md).
  // Empty: none are.
  std::string postprocess_path;
  // Called from one thread at a time with the share of the work done (0 to 1); may be empty.
  std::function<void(double done_ratio)> on_progress;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMPARE_OPTIONS_H_
