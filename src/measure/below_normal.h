// Differences below the smallest normal number of a type.

#ifndef PLUMBLINE_MEASURE_BELOW_NORMAL_H_
#define PLUMBLINE_MEASURE_BELOW_NORMAL_H_

#include <optional>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::measure {

// Noise, for the reason "subnormal", where two finite tensors differ by no more than the smallest
// normal number of their type in any element or statistic, however much that is of the whole:
// numbers that became zero, units of the smallest ones. Of float16, whose smaller numbers are in
// use, by one unit of the smallest. Nothing else, and where the usual rules suffice. `metrics` as
// of DifferenceOf().
std::optional<Difference> BelowNormal(const Item& target, const Item& golden,
                                      const PairContext& context, const TensorMetrics* metrics);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_BELOW_NORMAL_H_
