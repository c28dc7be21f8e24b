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
};

// For the gradient `result` that the backward call `call_name` returns, having got `incoming`. What
// is not known counts as 1; finite.
GradientCondition ConditionOfGradient(const Item& result, std::string_view call_name,
                                      const Item& incoming, const ForwardItems& forward);

// The propagation with the larger of both conditions.
Propagation Joined(Propagation propagation, const GradientCondition& gradient,
                   std::span<const InputError> operands);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_GRADIENT_CONDITION_H_
