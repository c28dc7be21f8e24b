// Elements of any type as doubles.

#ifndef PLUMBLINE_MEASURE_WIDENED_H_
#define PLUMBLINE_MEASURE_WIDENED_H_

#include <cstddef>
#include <cstdint>

#include "plumbline/tensor.h"

namespace plumbline::measure {

// `count` contiguous elements at any address. Exact but for 64-bit integers above 2^53, which are
// rounded; bool as 0 and 1, complex numbers by modulus (rounded to float32).
void Widen(DType dtype, const std::byte* data, size_t count, double* out);

// The same as a vector of doubles (Values), with two values for a complex element: its parts.
template <class Values>
Values WidenAll(DType dtype, const std::byte* data, size_t elements) {
  const bool is_complex = InfoOf(dtype).kind == DTypeKind::kComplex;
  const size_t count = is_complex ? 2 * elements : elements;
  if (is_complex) dtype = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  const auto address = reinterpret_cast<uintptr_t>(data);
  // Made from what is there, as zeros first would cost as much again.
  if (dtype == DType::kFloat32 && address % alignof(float) == 0) {
    const auto* const values = reinterpret_cast<const float*>(data);
    return {values, values + count};
  }
  if (dtype == DType::kFloat64 && address % alignof(double) == 0) {
    const auto* const values = reinterpret_cast<const double*>(data);
    return {values, values + count};
  }
  Values values(count);
  Widen(dtype, data, count, values.data());
  return values;
}

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_WIDENED_H_
