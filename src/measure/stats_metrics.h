// How far two sets of recorded statistics differ.

#ifndef PLUMBLINE_MEASURE_STATS_METRICS_H_
#define PLUMBLINE_MEASURE_STATS_METRICS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include "plumbline/compare.h"

namespace plumbline::measure {

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
