// How a call came out: the words of upstream's result files, why something was not judged, and one
// row per output.

#ifndef PLUMBLINE_PRECHECK_OUTCOME_H_
#define PLUMBLINE_PRECHECK_OUTCOME_H_

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
enum class Status : uint8_t { kNone, kPass, kWarning, kError, kSkip };
// " ", "pass", "Warning", "error", "SKIP": as release 1.2.2 writes them.
std::string_view StatusWord(Status status);
// The status that a word of either release stands for, whatever its case; nothing: no such word.
std::optional<Status> ParseStatus(std::string_view word);
// Of the outputs of a direction: the worst of error, Warning and pass; kSkip where all are; kNone
// where there are none.
Status Worst(const std::vector<Status>& statuses);

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
};
// "unsupported-type".
std::string_view CauseName(SkipCause cause);

struct Skip {
  SkipCause cause = SkipCause::kUnsupportedType;
  std::string detail;
  [[nodiscard]] std::string Text() const;  // "timeout: no answer within 600 s"
};

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

// One row of the details file: one output of one direction of a call.
struct OutputRow {
  std::string name;                              // "Functional.conv2d.0.forward.output.0"
  std::string bench_dtype, device_dtype, shape;  // as they are printed: "torch.float32", "(2, 3)"
  Cell cosine, max_abs_error;
  Cell hundredth, thousandth, ten_thousandth;  // shares of elements with a smaller relative error
  Cell error_rate, error_balance, rmse, small_value_error_ratio;
  Cell max_rel_error, mean_rel_error;
  Cell inf_nan_error_ratio, rel_error_ratio, abs_error_ratio;
  Cell max_ulp, mean_ulp, ulp_proportion;
  Status status = Status::kNone;
  std::string message;  // the facts that decided, one sentence each
};

// One direction of a call.
struct DirectionOutcome {
  Status status = Status::kNone;
  std::vector<OutputRow> rows;
  std::optional<Skip> skip;  // exactly if status is kSkip
};

struct CallOutcome {
  std::string name;  // "Functional.conv2d.0"
  DirectionOutcome forward, backward;
  uint64_t merged_calls = 0;  // calls like this one that -f left out
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OUTCOME_H_
