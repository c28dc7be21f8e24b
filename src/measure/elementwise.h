// What calls that work element by element return, computed again from what they read.

#ifndef PLUMBLINE_MEASURE_ELEMENTWISE_H_
#define PLUMBLINE_MEASURE_ELEMENTWISE_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "measure/statistic_range.h"

namespace plumbline::measure {

// One argument of a call: the elements of a tensor, already spread over the result's shape, or a
// number for all of them.
struct ElementOperand {
  std::vector<double> values;
  double number = 0;  // where there are no values

  [[nodiscard]] double At(size_t i) const { return values.empty() ? number : values[i]; }
};

// An element of the result, and the size of what was added up for it: rounding is relative to that.
struct Recomputed {
  double value = 0;
  double size = 0;
};

using ElementFunction = Recomputed (*)(std::span<const ElementOperand> operands, size_t i);

// How the call `call_name` computes an element from its arguments: those of the signature in its
// order, what is left out by its default (`add`: alpha 1, `addcmul`: value 1, `clamp`: infinite
// limits). Null for other calls and numbers of arguments, and for gradients.
ElementFunction ElementFunctionOf(std::string_view call_name, size_t arguments);

// Whether it compares two operands: numbers are first rounded to the type that it compares in.
bool IsComparison(ElementFunction function);

// What is known of one argument without its elements: a number, or where a tensor's statistics lie.
struct RangeOperand {
  StatisticRange range;
  bool is_number = false;  // `range` is that of the number
};

using RangeFunction = std::optional<StatisticRange> (*)(std::span<const RangeOperand> operands);

// Where the statistics of the result lie, for the same calls and arguments; null for those of which
// nothing is known. The function returns nothing where the arguments tell nothing.
RangeFunction RangeFunctionOf(std::string_view call_name, size_t arguments);

// Elements where the first operand is true, from the second; else from the third.
Recomputed Select(std::span<const ElementOperand> operands, size_t i);

// How far `result` is in any element from what `function` makes of `operands`, in roundings (of a
// type of this unit roundoff) of what was added up for the element: infinite where there is nothing
// to round (a sign), or for NaN. Nothing where an element would have to be infinite or NaN and is
// not: the call may go another way to a finite one.
std::optional<double> RoundingsOff(ElementFunction function,
                                   std::span<const ElementOperand> operands,
                                   std::span<const double> result, double unit_roundoff);

// Roundings of a few operations in a row, with margin: what a correct call may be off by.
inline constexpr double kCallRoundings = 4;

// Whether `result` is, in every element, what `function` makes of `operands`, to within the
// roundings of a correct call in a type of this roundoff.
bool IsResultOf(ElementFunction function, std::span<const ElementOperand> operands,
                std::span<const double> result, double unit_roundoff);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_ELEMENTWISE_H_
