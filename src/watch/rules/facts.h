// What is known about one tensor at one step, whoever has it: a scan of its elements, statistics in
// a file, or a training that goes on.

#ifndef PLUMBLINE_WATCH_RULES_FACTS_H_
#define PLUMBLINE_WATCH_RULES_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/tensor.h"
#include "watch/rules/interval.h"

namespace plumbline::watch {

// Why something could not be judged; several may hold. Files have the words of ReasonText().
enum Reason : uint16_t {
  kNan = 1,         // NaN in the tensor
  kInf = 2,         // an infinity in it
  kNoPrev = 4,      // no earlier value
  kPrevNan = 8,     // NaN in the earlier value
  kPrevInf = 16,    // an infinity in it
  kPrevShape = 32,  // it has another shape
  kEmpty = 64,      // no elements
  kMissing = 128,   // what the rule needs was not recorded
  kDType = 256,     // elements of a type without numbers
  kStatisticsOnly = 512,  // the statistics do not decide it
  kUnreadable = 1024,     // the file is damaged
  kNanOrNone = 2048,      // every statistic is NaN: no tensor was there, or NaN in it
};
using Reasons = uint16_t;
inline constexpr int kReasonCount = 12;
// The words of all, in order of their numbers: "nan inf no_prev".
std::string ReasonText(Reasons reasons);
std::string_view ReasonWord(int number);  // 0: "nan"
// The error code of MindSpore's checker for it.
int UpstreamCode(Reasons reasons);

// A closed range of values.
struct ValueRange {
  double start = 0, end = 0;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

// When two values count as equal: abs(x - p) <= atol + rtol * abs(p).
struct Closeness {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
  friend bool operator==(const Closeness&, const Closeness&) = default;
};

// What a set of rules wants to know that statistics do not hold. Rules refer to it by position.
struct ScanWishes {
  std::vector<ValueRange> ranges;
  std::vector<Closeness> closenesses;
  bool wants_changes = false;  // mean of abs(x - p)

  size_t PlaceOf(const ValueRange& range);
  size_t PlaceOf(const Closeness& closeness);
};

// Numbers are over finite elements; NaN and infinities are counted beside them.
struct TensorFacts {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::optional<uint64_t> count;  // elements
  Truth has_nan = Truth::kUnknown, has_inf = Truth::kUnknown;
  Interval nan_count, inf_count;
  Interval max, min, mean, abs_mean, norm, sd, zero_percentage;
  // How many are below and above 0, where statistics say so.
  std::optional<uint64_t> negatives, positives;
  // Of ScanWishes::ranges, after a scan.
  std::vector<Interval> range_percentages;
  std::string digest;  // of all elements; empty: none
  Reasons doubt = kStatisticsOnly;  // why numbers are not known better

  // The part of elements in a range, in percent, as well as it is known. `place`: in the wishes.
  [[nodiscard]] Interval PartIn(const ValueRange& range, size_t place) const;
  [[nodiscard]] Interval MaxMagnitude() const;
};

// A tensor and its earlier value, element by element.
struct ChangeFacts {
  // Means over pairs of finite elements; not bounded: not known.
  Interval mean_change, mean_before;
  std::vector<Truth> unchanged;  // of ScanWishes::closenesses
};

// What the statistics of two values say of the change between them.
ChangeFacts ChangeFromStatistics(const TensorFacts& now, const TensorFacts& before,
                                 const ScanWishes& wishes);

// Statistics as a recording has them. What is absent is not known.
struct RecordedStatistics {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::optional<uint64_t> count;  // taken from the shape where it is not given
  std::optional<double> max, min, mean, norm;
  std::optional<double> finite_max, finite_min;  // where max or min is not finite
  // Exact extremes of integers.
  std::optional<int64_t> whole_max, whole_min;
  std::optional<uint64_t> nan_count, inf_count, zero_count, negative_count, positive_count;
  std::optional<double> small_fraction;  // of elements nearer to 0 than a limit: not fewer are 0
  std::string digest;
  // How far a number may be from the true one.
  double relative_slack = 0;       // of max and min
  double mean_slack = 0;           // of mean and norm, relative
  double summation_slack = 0;      // of mean, relative to the mean magnitude
  double absolute_slack = 0;       // of all
  double sum_absolute_slack = 0;   // of mean and norm beside it
  // A statistic is NaN or infinite, whatever the others are.
  bool shows_nan = false, shows_inf = false;
  // A finite element may have become infinite where the numbers were made.
  bool may_overflow = false;
};
TensorFacts FactsOf(const RecordedStatistics& recorded);

// Half a unit of the last of `digits` significant digits of a printed number, relative to it; more
// digits count where the number has more.
double PrintedSlack(double value, int digits);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_FACTS_H_
