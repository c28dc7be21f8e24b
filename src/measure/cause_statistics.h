// Cause classes that max, min, mean and norm can show, for recordings without tensors.

#ifndef PLUMBLINE_MEASURE_CAUSE_STATISTICS_H_
#define PLUMBLINE_MEASURE_CAUSE_STATISTICS_H_

#include "measure/cause_class.h"
#include "plumbline/compare.h"

namespace plumbline::measure {

// "scale", "sign", "offset", "zeroed-block", "nonfinite", "saturated" or "narrowed" from the
// statistics of both sides; never of high confidence but for NaN, infinities and zeros, which are
// facts. `explained`: relative error that rounding and the inputs explain.
Cause ClassifyStatistics(const Item& target, const Item& golden, double explained);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_STATISTICS_H_
