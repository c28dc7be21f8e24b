// Sums over an output of a call in two precisions, the benchmark b and the device d: everything
// that the standards of the pre-check and its ladder of limits ask for, in one pass.
//
// Both sides are taken as T, float or double. b' is b rounded to the type of the device. F, S, N:
// of the elements, those with d and b' finite; of these, those with |b| <= small_value; the others.
// ae = |d - b| and re = ae / (|b| + eps) are rounded to T; sums are of doubles, in lanes as in
// kernel_table.h. Bit-identical on every CPU target.

#ifndef PLUMBLINE_KERNELS_OUTPUT_SUMS_H_
#define PLUMBLINE_KERNELS_OUTPUT_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/kernel_table.h"
#include "tensor/half.h"

namespace plumbline::kernels {

// What is asked for beside the sums of the ladder.
enum class OutputWork : uint8_t {
  kLadder,     // nothing
  kLimits,     // counts beyond the relative and the absolute limit, the balance of errors
  kBenchmark,  // sums and largest of errors, counts beyond the absolute limit, the balance
  kUlp,        // units of the last place
};

// How a pair is compared; limits are rounded to T.
struct OutputRule {
  OutputWork work = OutputWork::kLadder;
  DType bench_dtype = DType::kFloat32, device_dtype = DType::kFloat32;  // no complex: parts
  bool as_double = false;                         // T
  const NarrowFormat* bench_rounded_to = nullptr;  // b is rounded to it before all else

  double eps = 0x1p-23;
  double share_limits[3] = {0.01, 0.001, 0.0001};
  size_t share_count = 3;  // the first so many are asked for
  double small_value = 0, small_atol = 0, rtol = 0;

  // b': of T's mantissa, the bits that the type of the device lacks (0: b' = b), its least normal
  // exponent, the least magnitude that becomes infinite, and its largest number.
  int cast_drop_bits = 0;
  int cast_min_exponent = 0;
  double cast_infinite_from = std::numeric_limits<double>::infinity();
  double clip = 0;

  // A distance is |d - b| 2^(ulp_mantissa_bits - E), E = max(floor(log2 |b|), ulp_min_exponent),
  // 0 for b = 0. Of float8, whose mantissas get shorter, it is |d - b| 2^(w - e) with
  // e = max(floor(log2 |b|), -22) and w = 3, 2, 1 where |e| is at most 3, 7, 15; beyond, the
  // distance of sign(x) max(log2 |x|, -22) of both.
  int ulp_mantissa_bits = 0, ulp_min_exponent = 0;
  double ulp_above = 1;
  bool ulp_of_float8 = false;
};

// The default value is that of an empty run.
struct OutputSums {
  uint64_t count = 0;
  uint64_t any_not_finite = 0;  // elements with b or d NaN or infinite: not in the next five
  double dot = 0, bench_squares = 0, device_squares = 0;
  double bench_max = 0, device_max = 0;  // magnitudes; infinite ones count here

  double error_max = 0;  // ae; NaN left out
  uint64_t error_nan = 0;
  uint64_t below[3] = {};  // re < share_limits
  uint64_t mismatches = 0;  // b != d, NaN equals NaN

  uint64_t not_finite = 0, not_finite_bad = 0;  // outside F; of these, beyond the rules of limits
  uint64_t normal = 0, small = 0;               // N, S
  uint64_t rel_bad = 0, small_bad = 0;          // N with re > rtol; S with ae > small_atol
  double rel_sum = 0, rel_max = 0, error_squares = 0;  // N
  uint64_t above = 0, beneath = 0;                     // d > b', d < b'

  double ulp_sum = 0;  // without NaN
  double ulp_max = -std::numeric_limits<double>::infinity();
  uint64_t ulp_nan = 0, ulp_counted = 0, ulp_of_zero = 0;  // counted: above ulp_above
};

// Two contiguous runs of the types of a rule.
struct OutputRuns {
  const void* bench;
  const void* device;
  size_t count;
};

// Sums of at most kBlockElements elements. Use OutputSumsOf().
OutputSums OutputBlock(const KernelTable& table, const OutputRule& rule, const OutputRuns& runs);

// Of `first` followed by `second`, in index order.
OutputSums Combine(const OutputSums& first, const OutputSums& second);

// Of any number of elements, by blocks; large runs are shared out among the threads of the
// surrounding RunWithThreads().
OutputSums OutputSumsOf(const KernelTable& table, const OutputRule& rule, const OutputRuns& runs);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_OUTPUT_SUMS_H_
