// The verdict on two arrays of which nothing is known but their values: parameters of two
// checkpoints, two files (docs/reference/checkpoints.md).

#ifndef PLUMBLINE_MEASURE_ARRAY_VERDICT_H_
#define PLUMBLINE_MEASURE_ARRAY_VERDICT_H_

#include <cstdint>
#include <string_view>

#include "kernels/kernel_table.h"
#include "plumbline/compare.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

// Relative L2 error up to which a few roundings to the coarser of the two dtypes explain it.
double RoundingError(DType target, DType golden);
// And above which more than about half of the digits are lost: no noise is that large.
double LargestPlausibleError(DType target, DType golden);

struct ArrayVerdict {
  Verdict verdict = Verdict::kNotComparable;
  // Stable: "" (same, within noise), "exceeds-rounding", "outlier" (of one element alone),
  // "values-differ" (no rounding touches integers), "nonfinite-position", "nonfinite-both",
  // "zero-both", "zero-target", "zero-golden", "empty", "shape-differs", "unreadable",
  // "only-target", "only-golden".
  std::string_view reason;
  double error = 0;     // relative, L2; NaN where none is defined
  double expected = 0;  // RoundingError()
};

// Of a pair of which there is nothing to measure, for a reason of the list above or the caller's.
ArrayVerdict NotComparable(std::string_view reason);
// What the verdict on two arrays of equal shape with elements depends on.
struct ArrayDifference {
  uint64_t count = 0;                                    // pairs
  uint64_t nonfinite_count = 0, nonfinite_mismatch = 0;  // as of kernels::Pairwise
  bool differs = false;                                  // any pair of values
  double target_max = 0, golden_max = 0;                 // the rest: over finite pairs; magnitudes
  double max_abs = 0;                                    // of the differences
  double difference_norm = 0, golden_norm = 0;           // L2
};
ArrayVerdict JudgeDifference(const ArrayDifference& difference, DType target, DType golden);
// The same from the sums of one pass over both.
ArrayVerdict JudgeArrays(const kernels::Pairwise& sums, DType target, DType golden);
// The same, and also of single elements: of arrays of equally many, whose difference is known. The
// types are those that count, which the views may be wider than.
ArrayVerdict JudgeElements(const ArrayDifference& difference, const TensorView& target,
                           const TensorView& golden, DType target_dtype, DType golden_dtype);
ArrayVerdict JudgeElements(const kernels::Pairwise& sums, const TensorView& target,
                           const TensorView& golden);
// What one pass says.
ArrayDifference DifferenceOf(const kernels::Pairwise& sums);
// Of two arrays whose dtype, shape and bytes are equal.
ArrayVerdict JudgeEqualArrays(const TensorView& view);
// Of two contiguous tensors of equally many elements; empty ones are not comparable.
ArrayVerdict JudgePair(const TensorView& target, const TensorView& golden);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_ARRAY_VERDICT_H_
