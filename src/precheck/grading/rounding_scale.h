// How large the terms are that an output is made of, by what went into its call: what is left of
// them where they cancel is rounding, in proportion to them and not to the output.

#ifndef PLUMBLINE_PRECHECK_GRADING_ROUNDING_SCALE_H_
#define PLUMBLINE_PRECHECK_GRADING_ROUNDING_SCALE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "precheck/call_value.h"
#include "precheck/prepared_call.h"

namespace plumbline::precheck {

// What a forward returned on one side; null: not known.
struct ForwardResult {
  const CallValue* value = nullptr;
  std::span<const std::byte> memory = {};
};

// What a call was given and what its forward made of it. Everything is borrowed.
struct GivenToCall {
  const PreparedCall* call = nullptr;      // null: not known
  std::span<const std::byte> inputs = {};  // that the tensors of the call lie in
  ForwardResult bench = {}, device = {};
};

// Roundings of the largest term that may be left where all terms cancel: each term has a few, and
// a device may add them in an order of its own.
inline constexpr double kRoundingsLeft = 16;

// Both are a magnitude of terms times the square root of their number, as which the roundings of a
// sum grow; times the unit roundoff of a type and kRoundingsLeft that bounds what rounding leaves.
// 0: not known.
//
// Of the results: the largest element of the tensors that go in; so many terms as there are
// elements of the largest of them per element of the result.
double ForwardScale(const GivenToCall& given, uint64_t result_elements);
// Of the gradient of tensor `argument` (counted through all arguments): the largest incoming
// gradient times the largest result times max(1, 1 / half the range of the argument), as
// derivatives are ratios of results and arguments; shared out where the call reduces its argument.
double GradientScale(const GivenToCall& given, size_t argument);

// The same of the gradient of tensor `argument` where it is the last of at least three and its
// gradient a sum of incoming gradients.
double SummedGradientScale(const GivenToCall& given, size_t argument);

// The largest difference of the forward's results on both sides, where they have the same shapes.
// NaN: not known, or there is one.
double LargestResultError(const GivenToCall& given);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_GRADING_ROUNDING_SCALE_H_
