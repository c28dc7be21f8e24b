// The statistics that a recorder writes of a tensor, taken from its elements.

#ifndef PLUMBLINE_MEASURE_RECORDED_STATISTICS_H_
#define PLUMBLINE_MEASURE_RECORDED_STATISTICS_H_

#include "plumbline/compare.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

// Fills maximum, minimum, mean and norm, and the finite extremes where there are any.
void TakeStatistics(const TensorView& view, Item& item);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_RECORDED_STATISTICS_H_
