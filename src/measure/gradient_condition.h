// How a backward call magnifies errors, as far as its forward call tells.

#ifndef PLUMBLINE_MEASURE_GRADIENT_CONDITION_H_
#define PLUMBLINE_MEASURE_GRADIENT_CONDITION_H_

#include <span>
#include <string_view>

#include "measure/propagation.h"
#include "plumbline/compare.h"

namespace plumbline::measure {

// What a forward call read and returned, as recorded in the golden run. Tensors only.
struct ForwardItems {
  std::span<const Item* const> inputs;
  std::span<const Item* const> outputs;
};

struct GradientCondition {
  // Of functions with an exponential in them, whose derivative has it too.
  double amplification = 1;
  // Of sums of products of `incoming` with something that forward kept: the gradient of a weight,
  // or of an operand that was spread over others.
  double cancellation = 1;
  // How much more than that errors of `incoming` count, which may be of one sign where they add up
  // to nothing: behind a normalisation, which takes the mean away, the mean of the other factor
  // multiplies what rounding leaves of it.
  double coherence = 1;
  double terms = 1;  // of one such sum
};

// For the gradient `result` that the backward call `call_name` returns, having got `incoming`, with
// its error. What is not known counts as 1; finite.
GradientCondition ConditionOfGradient(const Item& result, std::string_view call_name,
                                      const InputError& incoming, const ForwardItems& forward);

// How much larger than that of `x` the relative error of `y` is, where y = f(x) and a gradient went
// through f: as |J v| / |v| is for an error v of any direction, so is |J^T g| / |g| for a gradient,
// but for the numbers of elements. From 1 to `most`.
double ConditionBySlope(const Item& x, const Item& y, const Item& gradient_of_x,
                        const Item& gradient_of_y, double most = kMostAmplification);

// The propagation with the larger of both conditions.
Propagation Joined(Propagation propagation, const GradientCondition& gradient,
                   std::span<const InputError> operands);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_GRADIENT_CONDITION_H_
