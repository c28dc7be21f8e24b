// Compare two runs: options, rows, verdicts, the first wrong call. Start at CompareRuns().
//
// "Target" is the side under test, "golden" the reference; they are named in this order everywhere.

#ifndef PLUMBLINE_COMPARE_H_
#define PLUMBLINE_COMPARE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/compare_options.h"
#include "plumbline/detection_limit.h"
#include "plumbline/recorded.h"
#include "plumbline/run.h"
#include "plumbline/shared_value.h"

namespace plumbline {

// Which information the two dumps share.
enum class CompareMode : uint8_t {
  kStatistics,  // max, min, mean, norm of both sides
  kDigest,      // CRC-32 (or xor) texts
  kTensor,      // the tensors themselves
};
std::string_view CompareModeName(CompareMode mode);  // "statistics", "md5", "tensor"

// plumbline's own judgement of one row, call or run. Ordered from good to bad, then "cannot say".
// The rule is docs/design/verdict.md.
enum class Verdict : uint8_t { kSame, kWithinNoise, kSuspicious, kBroken, kNotComparable };
inline constexpr size_t kVerdictCount = 5;
std::string_view VerdictName(Verdict verdict);  // "same", "within noise", ...
std::optional<Verdict> VerdictNamed(std::string_view name);

// Why a metric has no value.
enum class Absent : uint8_t {
  kEmpty,             // no elements
  kScalar,            // not defined for one element
  kDTypeUnsupported,  // no arithmetic for this element type
  kShapeMismatch,
  kNoCounterpart,  // the other side has no such value
  kUnreadable,     // the file is missing or damaged
  kZeroNorm,       // one side is all zeros
  kNotRecorded,    // the dump does not hold what the metric needs
  kNonFinite,      // NaN or Inf at differing positions
};
std::string_view AbsentName(Absent reason);

// A number, or the reason why there is none.
using Metric = std::variant<double, Absent>;

// What a row is to its call. Keyword arguments are inputs. A buffer is what the call left in it.
enum class ItemRole : uint8_t { kInput, kParameter, kOutput, kBuffer, kParameterGrad };

// One side of a row: one input, parameter, output or gradient of a call.
struct Item {
  Text name;  // "Functional.linear.0.forward.input.0"
  [[no_unique_address]] RecordedStatistics statistics;
  ItemRole role = ItemRole::kInput;
  bool is_tensor = false;
  bool has_recorded_digest = false;
  std::optional<bool> requires_grad;  // of tensors, where recorded
  OptionalText dtype;                 // "torch.float32", "<class 'int'>"; none: a null value
  OptionalText shape_text;            // "[2, 8]"; "[]" for scalars
  Shared<Shape> shape;                // of tensors
  // Max and min without NaN and infinities, if recorded.
  Shared<std::array<Recorded, 2>> finite_extremes;
  Text digest;     // recorded, or CRC-32 of the value's text for scalars
  Text data_name;  // file in dump_tensor_data; empty: none
};
static_assert(sizeof(Item) <= 96, "a long comparison has millions");

// Real-data metrics of a pair of tensors (docs/reference/metrics.md).
struct TensorMetrics {
  Metric cosine = Absent::kNotRecorded;
  Metric max_abs_error = Absent::kNotRecorded;
  Metric max_relative_error = Absent::kNotRecorded;
  Metric below_thousandth_ratio = Absent::kNotRecorded;        // elements with error under 0.001
  Metric below_five_thousandths_ratio = Absent::kNotRecorded;  // under 0.005
  Metric euclidean_distance = Absent::kNotRecorded;            // L2 norm of target - golden
  Metric relative_l2 = Absent::kNotRecorded;  // |target - golden| / |golden|, L2 norms
  Metric max_ulp = Absent::kNotRecorded;      // in units of the golden dtype
  uint64_t element_count = 0;
  uint64_t mismatch_count = 0;              // elements whose values differ
  uint64_t golden_zero_mismatch_count = 0;  // golden is 0 and target is not
};

// Differences of the four recorded statistics, in the order max, min, mean, norm.
struct StatisticDifferences {
  std::array<Metric, 4> difference{Absent::kNotRecorded, Absent::kNotRecorded, Absent::kNotRecorded,
                                   Absent::kNotRecorded};
  std::array<Metric, 4> relative_percent{Absent::kNotRecorded, Absent::kNotRecorded,
                                         Absent::kNotRecorded, Absent::kNotRecorded};
};

// One remark about a row: a stable code ("shape", "no-bench", "naninf") and a sentence.
struct Note {
  std::string code;
  std::string text;
};

enum class RowColor : uint8_t { kNone, kYellow, kRed };

// One row of the result table. A row of a Comparison refers to items that the comparison keeps: a
// copy of the row must not outlive it.
struct ComparedRow {
  uint32_t call = 0;  // index into Comparison::calls
  RowColor color = RowColor::kNone;
  Verdict verdict = Verdict::kNotComparable;
  Slot<Item> target, golden;
  Shared<TensorMetrics> tensor;  // in mode tensor
  Text result;                   // compatible verdict: "Yes", "Warning", "Different", "N/A", ...
  Shared<std::vector<Note>> notes;
  Text reason;          // stable code, e.g. "exceeds-noise"; docs/reference/compare.md lists all
  double error = 0;     // relative error the verdict is based on; NaN when there is none
  double expected = 0;  // error that rounding and the inputs explain

  [[nodiscard]] const Item& item() const { return target ? *target : *golden; }
  void AddNote(Note note) {
    notes.Edit([&](std::vector<Note>& all) { all.push_back(std::move(note)); });
  }
  // Those whose code `is_dropped(code)`.
  template <class IsDropped>
  void DropNotes(const IsDropped& is_dropped) {
    if (notes.empty()) return;
    notes.Edit([&](std::vector<Note>& all) {
      std::erase_if(all, [&](const Note& note) { return is_dropped(std::string_view(note.code)); });
    });
  }
  // Computed from the items; absent where one is missing.
  [[nodiscard]] StatisticDifferences statistics() const;
};

// One pair of calls, or a call without counterpart.
struct ComparedCall {
  Text target_name, golden_name;  // one may be empty
  uint32_t first_row = 0, row_count = 0;
  Verdict verdict = Verdict::kNotComparable;  // worst of its outputs
  Text unmatched_reason;  // empty: paired; else "no-golden", "no-target", "shape-differs", ...
  // Where shapes, dtypes or arguments differ; empty when only a null value is missing.
  Text unmatched_detail;
  // How a pair with unlike names was found: "renumbered", "unwrapped", "renamed", "fuzzy",
  // "mapped" (docs/reference/compare.md, "Pairs"). Empty: by name.
  Text pairing{};

  [[nodiscard]] bool paired() const { return unmatched_reason.empty(); }
  [[nodiscard]] const Text& name() const { return target_name.empty() ? golden_name : target_name; }
};

// The answer to "where did it go wrong first".
struct FirstWrongCall {
  std::string name;
  std::string what;                      // one sentence with the numbers of both sides
  std::string item;                      // the row that shows it
  std::string stack_line;                // innermost frame of the user's code; empty if unknown
  std::vector<std::string> stack;        // all frames, innermost first
  std::vector<std::string> module_path;  // enclosing modules, innermost first
  bool enters_with_inputs = false;       // an unrecorded source or parameter already differs
  // What kind of error it is (docs/reference/causes.md lists the codes): "scale", "permuted", ...,
  // "unexplained" when no class fits. Empty only before the cause was looked for.
  std::string cause;
  std::string cause_text;  // one sentence with the evidence
  std::string confidence;  // in the cause: "high", "medium" or "low"
};

struct CompareCounts {
  std::array<uint64_t, kVerdictCount> rows{};           // indexed by Verdict
  uint64_t calls = 0;                                   // paired
  uint64_t unmatched_target = 0, unmatched_golden = 0;  // calls
  uint64_t unreadable_files = 0;
  uint64_t recomputed = 0;  // calls that only one side runs a second time; they count as no loss
  // Rows of paired calls of which one side has no or other data, or both have NaN.
  uint64_t missing_values = 0;
  // A static graph against recorded calls: lines of the data mapping whose values neither side has.
  uint64_t unknown_mappings = 0;
};

// One of several steps that are judged together.
struct EarlierStep {
  // The dump.json files read. Its tensors have the data_name "<dump.json>//<file>".
  std::string target_path, golden_path;
  std::string target_tensors, golden_tensors;  // as of Comparison
  uint32_t calls_end = 0;                      // behind its calls
};

// The result of one comparison. A plain value, independent of the runs it came from.
struct Comparison {
  CompareMode mode = CompareMode::kStatistics;
  bool of_saves = false;  // two debug.json: "calls" are the values given to save()
  // Two dumps of static graphs: "calls" are kernels. The directories read, which data_name refers
  // to (load::GraphFile); empty for other recordings.
  std::vector<std::string> target_graphs, golden_graphs;
  std::string target_path, golden_path;  // the dump.json files read
  // Directories of their tensor files; empty: dump_tensor_data beside them.
  std::string target_tensors, golden_tensors;
  // While a step is judged behind those before it: those, whose calls come first.
  std::vector<EarlierStep> earlier;
  std::vector<ComparedRow> rows;
  std::shared_ptr<const void> items;  // keeps what the rows refer to
  std::vector<ComparedCall> calls;
  // Per call, innermost first; empty: no stack.json.
  std::vector<Shared<std::vector<std::string>>> stacks;
  std::optional<FirstWrongCall> first_wrong_call;
  CompareCounts counts;
  DetectionLimit limit;
  RunLoss target_loss, golden_loss;
  std::vector<std::string> warnings;
  std::vector<std::string> files;  // written by WriteComparison()
  // The config.json of the recording that would settle the cause of the first wrong call; empty
  // when no call is wrong or nothing finer can be recorded.
  std::string next_config;
  // Pairs of values that a layer mapping stands for; written as data_mapping_<time>.yaml.
  std::vector<std::pair<std::string, std::string>> data_mapping;

  // True if every call, value and file could be judged and no recorder lost any, so that "no wrong
  // call" may be said. Rows whose two sides agree in a way that proves little (zeros, infinities at
  // the same places, empty tensors) do not count against it.
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] bool of_graphs() const { return !target_graphs.empty(); }
};

// Reads and compares two runs (a dump.json or debug.json, or a directory that holds exactly one
// rank). Writes nothing. Errors: those of Run::Open(); kInvalidArgument when the two dumps hold
// different tasks or only one of them holds saved values (debug.json).
// A tensor file that cannot be read is a row with reason "unreadable", not an error.
Result<Comparison> CompareRuns(const std::string& target, const std::string& golden,
                               const CompareOptions& options = {});

// Writes the files selected in `options` into output_dir (created when missing) and lists them in
// comparison.files. Each file appears complete or not at all. kIo, kNotFound.
Status WriteComparison(Comparison& comparison, const CompareOptions& options);

// The answer in a few lines of text, as `plumb compare` prints it, each ended by '\n'.
std::string SummaryText(const Comparison& comparison);
// The same as one JSON object (docs/reference/compare.md, "machine form").
std::string SummaryJson(const Comparison& comparison);
// The machine form with every row: the text of compare_result_<time>.json. About 1 KB per row.
std::string ResultJson(const Comparison& comparison);

// Whether one of `conditions` is met: "wrong" (a call is named), "unjudged", "any"; "suspicious",
// "broken", "unmatched" (docs/reference/compare.md, "Gates"). Another word: kInvalidArgument.
Result<bool> FailsOn(const Comparison& comparison, const std::vector<std::string>& conditions);

}  // namespace plumbline

#endif  // PLUMBLINE_COMPARE_H_
