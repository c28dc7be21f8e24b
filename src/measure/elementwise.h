// Two arrays element by element: how many agree, which one stands alone, what rounding makes of
// their distance, and what a call should have returned.

#ifndef PLUMBLINE_MEASURE_ELEMENTWISE_H_
#define PLUMBLINE_MEASURE_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "measure/propagation.h"
#include "measure/stats_metrics.h"
#include "plumbline/compare.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

// How many elements of two arrays agree: the figures of upstream's SingleComparator.

// Relative errors are |a - b| / max(|a|, |b|), 0 when both are 0. A pair with NaN is unequal and
// within no limit; both infinities of one sign are equal.
struct ElementMatch {
  uint64_t count = 0;
  uint64_t equal = 0;
  uint64_t within_thousandth = 0, within_hundredth = 0;
  std::optional<uint64_t> first_mismatch;  // flat index
  double max_abs = 0, max_relative = 0;    // NaN when a pair has one
};

// Of the common part: arrays of different rank are flattened, longer dimensions are cropped. Values
// are widened to double, so unsigned ones do not wrap. kUnsupported: complex elements.
Result<ElementMatch> MatchElements(const TensorView& a, const TensorView& b);

// One element that is wrong among many that are right, where it is no larger than these.

// How two arrays differ as a whole: root mean squares over their finite pairs.
struct TypicalDifference {
  double difference = 0, golden = 0;
  double unit_roundoff = 0;  // of the coarser of the two types
};

// A lone element is further off than this: where none is, there is no need to look.
double LeastOfLoneElement(const TypicalDifference& typical);

// Whether some element is off by more than 16 of its own roundings and 8 times as far as rounding
// of a typical element and as the typical difference, while hardly any other is off by more than 8
// of its own: noise of sums leaves one of twenty elements that far off, as it is no smaller where
// the sum is. Of contiguous arrays of equally many elements; complex ones: false.
bool HasLoneElement(const TensorView& target, const TensorView& golden,
                    const TypicalDifference& typical);

// What rounding of two tensors makes of a distance between them, and of its gradient.

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

// What calls that work element by element return, computed again from what they read.

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
