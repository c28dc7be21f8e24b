// What rounding of two tensors makes of a distance between them, and of its gradient.

#ifndef PLUMBLINE_MEASURE_DISTANCE_ERROR_H_
#define PLUMBLINE_MEASURE_DISTANCE_ERROR_H_

#include <span>
#include <string_view>

#include "measure/propagation.h"
#include "plumbline/compare.h"

namespace plumbline::measure {

// The relative error of a difference, distance or loss `output` that the errors of the tensors
// explain which the call compares, without a ceiling: where these nearly agree, little more than
// rounding is left (docs/design/verdict.md, "Distances"). `rounding`: relative, of a sum of
// products as long as the call's. 0 for other calls, and where the tensors are far apart.
double DistanceError(const Item& output, std::string_view call_name,
                     std::span<const InputError> operands, double rounding);

// What such a call, which returned `output`, gives to what it compares, having got `incoming`.
struct DistanceGradient {
  const Item& gradient;
  const Item& incoming;
  const Item& output;
};

// The same of a gradient.
double DistanceGradientError(const DistanceGradient& of, std::string_view call_name,
                             std::span<const InputError> operands, double rounding);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_DISTANCE_ERROR_H_
