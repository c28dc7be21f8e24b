// How a call came out: the words of upstream's result files, why something was not judged, and one
// row per output.

#ifndef PLUMBLINE_PRECHECK_OUTCOME_H_
#define PLUMBLINE_PRECHECK_OUTCOME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace plumbline::precheck {

// From good to bad. kNone: there is nothing to judge (no backward was recorded); kSkip: there was,
// and it was not judged.
enum class CheckStatus : uint8_t { kNone, kPass, kWarning, kError, kSkip };
// " ", "pass", "Warning", "error", "SKIP": as release 1.2.2 writes them.
std::string_view StatusWord(CheckStatus status);
// The status that a word of either release stands for, whatever its case; nothing: no such word.
std::optional<CheckStatus> ParseStatus(std::string_view word);
// Of the outputs of a direction: the worst of error, Warning and pass; kSkip where all are; kNone
// where there are none.
CheckStatus Worst(const std::vector<CheckStatus>& statuses);
// Judged and no pass.
inline bool IsWrong(CheckStatus status) {
  return status == CheckStatus::kWarning || status == CheckStatus::kError;
}

enum class SkipCause : uint8_t {
  kUnsupportedType,
  kNotInInventory,
  kFiltered,
  kRandom,
  kBadArgument,
  kMissingData,
  kCpuFailed,
  kDeviceFailed,
  kTimeout,
  kCrashed,
  kOutOfMemory,
  kBackwardSkipped,
  kNoOutput,
  kNoCounterpart,
  kOther,  // of a row that another tool wrote, whose message names none of these
};
// "unsupported-type".
std::string_view CauseName(SkipCause cause);
std::optional<SkipCause> ParseCause(std::string_view name);

struct Skip {
  SkipCause cause = SkipCause::kUnsupportedType;
  std::string detail;
  [[nodiscard]] std::string Text() const;  // "timeout: no answer within 600 s"
};
// A Skip of its text, with what other tools write there as the detail of kOther.
Skip ParseSkip(std::string_view text);

// The reason of a device whose benchmark has none: a crash or a hang says where it was.
Skip OnDevice(Skip skip);
// Whether a device failed where the benchmark did not: it raised, crashed or hung.
bool IsDeviceFailure(const Skip& skip);

// A T, or why there is none. `return Skip{...}` and `return value` both work.
template <class T>
class [[nodiscard]] OrSkip : public tl::expected<T, Skip> {
 public:
  using Base = tl::expected<T, Skip>;
  using Base::Base;
  OrSkip() = default;
  OrSkip(Skip skip) : Base(tl::unexpect, std::move(skip)) {}  // NOLINT: implicit by design
};

// A cell that holds a number: upstream prints a double with a fixed count of digits and narrower
// floats in their shortest form. Absent: one blank.
struct Number {
  double value = 0;
  bool is_double = true;    // printed fixed-point
  bool is_integer = false;  // printed bare
};
using Cell = std::optional<Number>;

// What a report needs to explain a row that is no pass. Complex numbers count as two elements each.
struct FailureFacts {
  // Element with the largest absolute error, NaN beside a number above all; the first of several.
  uint64_t worst_index = 0;
  double worst_bench = 0, worst_device = 0;
  // Elements by relative error |d - b| / (|b| + eps): [0] equal (NaN with NaN, too), [1] below
  // 1e-11, [k] from 1e(k-13) to below 1e(k-12), [14] from 10 on, [15] NaN or infinity on one side.
  static constexpr size_t kBins = 16;
  std::array<uint64_t, kBins> histogram = {};
};

// One row of the details file: one output of one direction of a call.
struct OutputRow {
  // "Functional.conv2d.0.forward.output.0"; of an argument that the call changed in place
  // "Torch.add.0.forward.input.out".
  std::string name;
  std::string bench_dtype, device_dtype, shape;  // as they are printed: "torch.float32", "(2, 3)"
  Cell cosine, max_abs_error;
  Cell hundredth, thousandth, ten_thousandth;  // shares of elements with a smaller relative error
  Cell error_rate, error_balance, rmse, small_value_error_ratio;
  Cell max_rel_error, mean_rel_error;
  Cell inf_nan_error_ratio, rel_error_ratio, abs_error_ratio;
  Cell max_ulp, mean_ulp, ulp_proportion;
  CheckStatus status = CheckStatus::kNone;
  // A tensor of which every element is zero on both sides: it passes, and proves little.
  bool is_all_zero = false;
  std::string message;                // the facts that decided, one sentence each
  std::optional<FailureFacts> facts;  // of tensors that are Warning or error
};

// One direction of a call.
struct DirectionOutcome {
  CheckStatus status = CheckStatus::kNone;
  std::vector<OutputRow> rows;
  std::optional<Skip> skip;  // exactly if status is kSkip

  // One that was not judged.
  static DirectionOutcome Skipped(Skip skip);
};

struct CallOutcome {
  std::string name;  // "Functional.conv2d.0"
  DirectionOutcome forward, backward;
  uint64_t merged_calls = 0;  // calls like this one that -f left out
  std::string note = {};      // what else the result file says of it
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OUTCOME_H_
