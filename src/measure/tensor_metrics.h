// How far two tensors differ: every real-data metric from one pass over both.

#ifndef PLUMBLINE_MEASURE_TENSOR_METRICS_H_
#define PLUMBLINE_MEASURE_TENSOR_METRICS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "plumbline/compare.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

// Elements of any type as doubles.

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

// Metrics of two tensors of equal shape. Blocks of a large tensor run on the threads of the
// caller's task arena; the result does not depend on their number. Strided views are copied once.
// Absent values say why: kEmpty, kScalar (0-d and one element: no cosine, 0-d: no ratios),
// kShapeMismatch, kNonFinite (NaN or Inf at differing positions or of other sign), kZeroNorm
// (cosine only). kInternal when memory for a copy runs out.
Result<TensorMetrics> MeasureTensors(const TensorView& target, const TensorView& golden);

// The same, and whether both hold NaN or infinities at the same places, looked for in the same
// pass. Where no value differs, elements of other bits count as mismatches: zeros of either sign,
// and all elements of another type.
struct MeasuredPair {
  TensorMetrics metrics;
  bool has_nonfinite = false;
};
Result<MeasuredPair> MeasurePair(const TensorView& target, const TensorView& golden);

// The sums behind them, of tensors of equal shape that are not empty. kInternal as above.
Result<kernels::Pairwise> SumPairs(const TensorView& target, const TensorView& golden);

// Whether type and bit patterns are equal throughout: every metric is known then without a pass.
// The comparison stops at the first difference, so unequal tensors lose nothing. False for strided
// views. Requires: equal shapes.
bool HaveEqualBytes(const TensorView& target, const TensorView& golden);

// The metrics of two tensors that equal this one, as of finite elements. Requires: not empty.
TensorMetrics MetricsOfEqual(const TensorView& tensor);

// The metrics that follow from the sums of a pass. `dimensions` is the rank of the tensors.
TensorMetrics MetricsFromSums(const kernels::Pairwise& sums, size_t dimensions);

// All metrics absent for one reason.
TensorMetrics AbsentMetrics(Absent reason);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_TENSOR_METRICS_H_
