// Where maximum, minimum, mean and root mean square of what a call makes can lie, as far as those
// of what it reads tell.

#ifndef PLUMBLINE_MEASURE_STATISTIC_RANGE_H_
#define PLUMBLINE_MEASURE_STATISTIC_RANGE_H_

#include <optional>

#include "plumbline/compare.h"

namespace plumbline::measure {

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

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_STATISTIC_RANGE_H_
