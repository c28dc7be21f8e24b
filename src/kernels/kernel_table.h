// The element kernels and the choice of the CPU target that runs them.
//
// Results are bit-identical on every target, thread count and compiler: each accumulation uses 16
// double lanes, element i goes to lane i mod 16, lanes are summed by halving (8, 4, 2, 1), blocks
// of kBlockElements are combined in index order.

#ifndef PLUMBLINE_KERNELS_KERNEL_TABLE_H_
#define PLUMBLINE_KERNELS_KERNEL_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu_target.h"
#include "plumbline/tensor.h"

namespace plumbline::kernels {

inline constexpr size_t kBlockElements = size_t{1} << 20;

// Sums over one run of elements. NaN elements are counted, and left out of everything but `sum`
// and `sum_squares`, which become NaN (Inf - Inf likewise). Complex elements count by modulus.
struct Moments {
  uint64_t count = 0;
  uint64_t nan_count = 0;
  uint64_t inf_count = 0;   // both signs
  uint64_t zero_count = 0;  // both zeros
  double max = 0, min = 0;  // over non-NaN elements; -inf / +inf when there are none
  double finite_max = 0, finite_min = 0;  // over finite elements; -inf / +inf when there are none
  double sum = 0;
  double sum_squares = 0;
  // Exact extremes of integer types (also set for bool); max and min round 64-bit values.
  int64_t int_max = 0, int_min = 0;      // signed kinds
  uint64_t uint_max = 0, uint_min = 0;   // unsigned kinds and bool
};

// What one pass over two equally long runs yields. `target` minus `golden`. An element pair with
// NaN or Inf on either side is counted in `nonfinite_*` and left out of the sums.
struct Pairwise {
  uint64_t count = 0;
  uint64_t mismatch_count = 0;          // pairs whose values differ (NaN equals NaN)
  uint64_t nonfinite_count = 0;         // pairs with NaN or Inf on either side
  uint64_t nonfinite_mismatch = 0;      // of these: other class (NaN, +Inf, -Inf, finite) per side
  uint64_t golden_zero_count = 0;
  uint64_t golden_zero_mismatch = 0;    // golden is 0 and target is not
  uint64_t below_1e3 = 0, below_5e3 = 0;  // relative error < 0.001, < 0.005
  double dot = 0, target_squares = 0, golden_squares = 0, difference_squares = 0;
  double max_abs = 0;                   // 0 when no finite pair
  double max_rel = 0;
  uint64_t max_ulp = 0;                 // in units of the golden dtype; 0 for integers
  uint64_t max_abs_index = 0;           // first element where max_abs occurs
  uint64_t first_mismatch = 0;          // valid if mismatch_count > 0
  double target_max = 0, golden_max = 0;  // largest finite magnitude of each side
};

// One target's kernels. `data` need not be aligned. All pointers are valid for every dtype.
struct KernelTable {
  CpuTarget target;
  // Contiguous run of `count` elements of `dtype`.
  void (*moments)(DType dtype, const void* data, size_t count, Moments* out);
  // Two contiguous runs; dtypes may differ.
  void (*pairwise)(DType target_dtype, const void* target, DType golden_dtype, const void* golden,
                   size_t count, Pairwise* out);
  // Widens to float32 (bf16, fp16, float8, integers as rounded).
  void (*to_float)(DType dtype, const void* data, size_t count, float* out);
};

// The table for `target`. Requires: the target is usable on this machine.
const KernelTable& TableFor(CpuTarget target);
// The table chosen for this process (cpu_target.h), chosen once.
const KernelTable& ActiveTable();

// Result of `first` followed by `second`, which must be combined in index order.
Moments Combine(const Moments& first, const Moments& second);
Pairwise Combine(const Pairwise& first, const Pairwise& second);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_KERNEL_TABLE_H_
