// Elements of any type as doubles, a block at a time.

#ifndef PLUMBLINE_MEASURE_WIDENED_H_
#define PLUMBLINE_MEASURE_WIDENED_H_

#include <cstddef>

#include "plumbline/tensor.h"

namespace plumbline::measure {

inline constexpr size_t kWidenedBlock = 1024;  // the most elements of one call

// `count` contiguous elements at any address. Exact but for 64-bit integers above 2^53, which are
// rounded; bool as 0 and 1, complex numbers by modulus (rounded to float32).
// Requires: count <= kWidenedBlock.
void Widen(DType dtype, const std::byte* data, size_t count, double* out);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_WIDENED_H_
