// Whether a call stays finite in another type, as far as the recorded ranges of its operands decide
// it: nothing is computed but bounds, so the answer needs no saved tensor.

#ifndef PLUMBLINE_OVERFLOW_RESULT_BOUNDS_H_
#define PLUMBLINE_OVERFLOW_RESULT_BOUNDS_H_

#include <optional>

#include "plumbline/record.h"
#include "plumbline/tensor.h"

namespace plumbline {

// The forward call with its floating operands and results in `dtype`, which has at least 8
// significant bits. True: no element can overflow. False: one does.
// Nothing: the ranges decide neither, or the API is none of those whose bounds are known (sums,
// products, quotients, matrix products, squares, exponentials), or an operand is not finite.
std::optional<bool> StaysFinite(const Call& call, DType dtype);

}  // namespace plumbline

#endif  // PLUMBLINE_OVERFLOW_RESULT_BOUNDS_H_
