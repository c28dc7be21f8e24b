// Statistics of tensors: which were asked for, where they can lie, how they are taken, and how far
// two sets of them differ.

#ifndef PLUMBLINE_MEASURE_STATS_METRICS_H_
#define PLUMBLINE_MEASURE_STATS_METRICS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "plumbline/compare.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

// Which statistics a recorder was asked for: summary_mode, or the categories of a static-graph
// dump, may be a list.

// Of max, min, mean and norm.
using StatisticSet = std::array<bool, 4>;

struct StatisticChoice {
  // What no tensor of that side has and tensors of the other side do. None where nothing would be
  // left to compare.
  StatisticSet target_lacks{}, golden_lacks{};

  [[nodiscard]] bool is_complete() const;
  // Of either side.
  [[nodiscard]] StatisticSet left_out() const;
};

// Of the tensors in `rows`. One tensor alone says nothing about what was asked for.
StatisticChoice ChoiceOf(std::span<const ComparedRow> rows);

// "the target has no min and norm: only max and mean were compared". Requires: not is_complete().
std::string ChoiceText(const StatisticChoice& choice);

// What the digests of rows are. Only of checksums do equal ones prove equal contents.
enum class DigestKind : uint8_t {
  kChecksum,
  kXor,     // of words, as of `summary_mode: xor`: equal words cancel in pairs
  kLogged,  // what a log of torch's DebugMode says (docs/formats/debug_mode_log.md), as a norm
};
// The last of these that one of them is. Told by their spelling: checksums are hexadecimal digits.
DigestKind DigestKindOf(std::span<const ComparedRow> rows);
// Whether two digests may have been computed in the same way, by the look of them.
bool AreOfOneForm(std::string_view digest, std::string_view other);

// Whether a recorder may leave mean and norm out: release 26.2.0 does for integers and float64, and
// 1.2.2 the norm for complex numbers.
bool MayLackMean(const Item& item);

// Where maximum, minimum, mean and root mean square of what a call makes can lie, as far as those
// of what it reads tell.

struct Interval {
  double low = 0, high = 0;
};

// Of a tensor; what is spread over a larger shape keeps all four.
struct StatisticRange {
  Interval max, min, mean, rms;
  double size = 0;  // the largest magnitude that was added up: rounding is relative to that

  // The largest magnitude of an element.
  [[nodiscard]] double Largest() const;
};

// What a recording says of a tensor. Nothing where a statistic is missing or not finite.
std::optional<StatisticRange> RangeOf(const Item& item);
StatisticRange RangeOfNumber(double number);

// Elements of which nothing is known but that none is larger than `bound`.
StatisticRange Within(double bound);
// Each element times `factor`.
StatisticRange Times(const StatisticRange& range, double factor);
// Each element of one added to one of the other.
StatisticRange Plus(const StatisticRange& a, const StatisticRange& b);
// Products of elements of the two, whichever belong together.
StatisticRange Product(const StatisticRange& a, const StatisticRange& b);
// Quotients; nothing where a divisor may be zero.
std::optional<StatisticRange> Quotient(const StatisticRange& a, const StatisticRange& b);

StatisticRange SquareOf(const StatisticRange& range);
// Square roots; nothing where some element may be negative.
std::optional<StatisticRange> RootOf(const StatisticRange& range);

// How far the statistics of `result` are outside of `range`, in roundings (of a type of this unit
// roundoff) of what was added up. 0: they can be its own. Nothing without finite statistics.
std::optional<double> RoundingsOutside(const StatisticRange& range, const Item& result,
                                       double unit_roundoff);

// The statistics that a recorder writes of a tensor, taken from its elements.

// Fills maximum, minimum, mean and norm, and the finite extremes where there are any.
void TakeStatistics(const TensorView& view, Item& item);

// How far two sets of recorded statistics differ.

// Differences target - golden, and |difference / golden| in percent, of max, min, mean and norm.
// Absent::kNotRecorded where a side is not a number (null, truth value, text); the percentage is
// Absent::kZeroNorm where golden is 0. NaN stays NaN.
StatisticDifferences CompareStatistics(const std::array<Recorded, 4>& target,
                                       const std::array<Recorded, 4>& golden);

// The compatible rule: any statistic differs by more than half of the larger magnitude. NaN or
// infinity on one side alone counts as a breach.
bool BreachesWarningRule(const std::array<Recorded, 4>& target,
                         const std::array<Recorded, 4>& golden);

// Relative error of statistics that were printed with six digits: a unit in the last digit of a
// number that begins with 1, and half of one for good measure.
inline constexpr double kSixDigitError = 1.5e-5;

// Size of the difference relative to the golden tensor, as far as statistics show it: max and min
// against the largest magnitude, the mean against the root mean square, the norm against itself;
// the largest of the four. Infinity when finite and infinite values meet. `element_count` > 0.
double StatisticError(const std::array<Recorded, 4>& target, const std::array<Recorded, 4>& golden,
                      int64_t element_count);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_STATS_METRICS_H_
