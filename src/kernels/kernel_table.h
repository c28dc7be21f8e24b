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

inline constexpr size_t kLanes = 16;
inline constexpr size_t kBlockElements = size_t{1} << 16;

// Sums over one run of elements. NaN elements are counted, and left out of everything but `sum`
// and `sum_squares`, which become NaN (Inf - Inf likewise; always the positive quiet NaN). Complex
// elements count by modulus, bool as 0 and 1. The default value is that of an empty run.
struct Moments {
  uint64_t count = 0;
  uint64_t nan_count = 0;
  uint64_t inf_count = 0;   // both signs
  uint64_t zero_count = 0;  // both zeros
  // Over non-NaN elements; -inf / +inf when there are none. +0 counts as greater than -0.
  double max = -__builtin_inf(), min = __builtin_inf();
  double finite_max = -__builtin_inf(), finite_min = __builtin_inf();  // over finite elements
  double sum = 0;
  double sum_squares = 0;
  // Exact extremes of integer types (the unsigned pair also for bool); max and min round 64-bit
  // values. The identities of max and min where the kind does not apply.
  int64_t int_max = INT64_MIN, int_min = INT64_MAX;
  uint64_t uint_max = 0, uint_min = UINT64_MAX;
};

// A reduction in progress. Feed it with UpdateMoments(), end it with FinishMoments(). Chunks whose
// lengths are multiples of kLanes (the last one excepted) give, bit for bit, the result of one
// contiguous run.
struct MomentsState {
  alignas(64) double sum[kLanes] = {};  // lanes of the current block
  alignas(64) double squares[kLanes] = {};
  int64_t exact_sum = 0;       // same, for integers of at most 32 bits
  uint64_t exact_squares = 0;  // same, of at most 16 bits
  Moments total;               // extremes and counts so far; sums of the finished blocks
};

// What one pass over two equally long runs yields. `target` minus `golden`. An element pair with
// NaN or Inf on either side is counted in `nonfinite_*` and left out of everything else but
// `mismatch_count`. Values are compared after widening to double, so +0 equals -0; 64-bit
// integers are compared exactly with integers of any size, and equal to a float only if it is the
// same integer.
// Complex numbers: |difference|, real part of target * conj(golden) in `dot`, moduli elsewhere.
//
// The relative error of a pair is |difference| / |golden|, with 2^-52 in place of a golden 0, and
// 0 when both are 0. `max_rel` is the quotient rounded to double; the counts below a limit compare
// |difference| with limit * |golden| in double.
struct Pairwise {
  uint64_t count = 0;
  uint64_t mismatch_count = 0;      // pairs whose values differ (NaN equals NaN)
  uint64_t nonfinite_count = 0;     // pairs with NaN or Inf on either side
  uint64_t nonfinite_mismatch = 0;  // of these: other class (NaN, +Inf, -Inf, finite) per side
  uint64_t golden_zero_count = 0;
  uint64_t golden_zero_mismatch = 0;      // golden is 0 and target is not
  uint64_t below_1e3 = 0, below_5e3 = 0;  // relative error < 0.001, < 0.005
  double dot = 0, target_squares = 0, golden_squares = 0, difference_squares = 0;
  // Powers of two that these sums leave out of what they square; not 0 only behind
  // RescaleSquares() (kernels/scaled_squares.h).
  int target_exponent = 0, golden_exponent = 0, difference_exponent = 0;
  double max_abs = 0;  // 0 when no finite pair
  double max_rel = 0;
  // Distance in representable values of the golden dtype, the target rounded to it if it has
  // another; both zeros are one value. 0 for integers and complex.
  uint64_t max_ulp = 0;
  uint64_t max_abs_index = 0;             // first element where max_abs occurs; 0 when max_abs is 0
  uint64_t first_mismatch = 0;            // valid if mismatch_count > 0
  double target_max = 0, golden_max = 0;  // largest magnitude of each side over finite pairs
};

// Two contiguous runs of `count` elements; the dtypes may differ.
struct PairOfRuns {
  DType target_dtype;
  const void* target;
  DType golden_dtype;
  const void* golden;
  size_t count;
};

// A pairwise reduction in progress, with the same rule for chunks as MomentsState.
struct PairwiseState {
  // Lanes of the current block: dot, target, golden and difference squares.
  alignas(64) double lanes[4][kLanes] = {};
  Pairwise total;  // everything else so far; sums of the finished blocks
};

// Two runs of one type: whether their bytes are equal, and if so whether elements are not finite.
enum class Likeness : uint8_t { kDiffers, kFinite, kNonFinite };

struct ChangeLimit;
struct ChangeSums;
// What a gradient's elements are compared with.

// Contiguous elements; no complex ones. `data` need not be aligned.
struct GradientRun {
  DType dtype;
  const void* data;
  size_t count;
};

// Bounds that are float32 numbers. Elements are compared in float32 where that holds all values of
// their dtype, else in double.
struct GradientRule {
  const double* bounds;
  size_t bound_count;
};

struct DeviationSums;
struct MagnitudeSums;
struct OutputRule;
struct OutputRuns;
struct OutputSums;
struct PanelProduct;
struct RangeCount;
struct RotaryRow;
struct SpreadCenter;
struct SpreadSums;

// One target's kernels. `data` need not be aligned. All pointers are valid for every dtype.
struct KernelTable {
  CpuTarget target;
  // Adds elements that do not cross a multiple of kBlockElements. Use UpdateMoments().
  void (*moments_part)(DType dtype, const void* data, size_t count, MomentsState* state);
  // Likewise for pairs. Use UpdatePairwise().
  void (*pairwise_part)(const PairOfRuns& runs, PairwiseState* state);
  // Widens to float32: exact for bool, bfloat16, float16, float8 and integers of at most 16 bits,
  // rounded to nearest for others. Complex elements give their modulus.
  void (*to_float)(DType dtype, const void* data, size_t count, float* out);
  // See kernels/deviation_sums.h.
  void (*deviations)(const PairOfRuns& runs, DeviationSums* sums);
  void (*spreads)(const SpreadCenter& center, const PairOfRuns& runs, SpreadSums* sums);
  // Of 8-bit floats and integers kFinite where they are equal. Use LikenessOf() of finite_scan.h.
  Likeness (*likeness)(DType dtype, const void* first, const void* second, size_t bytes);
  // See kernels/panel_product.h.
  void (*multiply_panels)(const PanelProduct& product);
  // See kernels/rotary_row.h.
  void (*add_rotary_row)(const RotaryRow& row);
  // See kernels/output_sums.h.
  void (*output_block)(const OutputRule& rule, const OutputRuns& runs, OutputSums* sums);
  // How many elements have |x| < bound, of complex ones the modulus; NaN has not. float32 and
  // narrower floats are compared with the bound rounded to float32.
  uint64_t (*count_below)(DType dtype, const void* data, size_t count, double bound);
  // See kernels/magnitude_sums.h. Of changes `sums` may be null.
  void (*magnitudes)(DType dtype, const void* data, size_t count, MagnitudeSums* sums);
  void (*count_range)(DType dtype, const void* data, size_t count, RangeCount* range);
  void (*changes)(const PairOfRuns& runs, ChangeSums* sums, ChangeLimit* limits,
                  size_t limit_count);
  // Adds how many elements are above each bound of the rule (NaN never is). `signs`, null for none:
  // one bit per element, the first one lowest, whether it is above 0; whole bytes are written.
  void (*gradient_part)(const GradientRun& run, const GradientRule& rule, uint64_t* above,
                        uint8_t* signs);
};

// The table for `target`. Requires: the target is usable on this machine.
const KernelTable& TableFor(CpuTarget target);
// The table chosen for this process (cpu_target.h), chosen once. An unusable PLUMBLINE_CPU_TARGET
// falls back to the best target here; programs report it at start by calling ChooseTarget().
const KernelTable& ActiveTable();

// Adds `count` contiguous elements. Requires: every earlier `count` was a multiple of kLanes.
void UpdateMoments(const KernelTable& table, DType dtype, const void* data, size_t count,
                   MomentsState* state);
Moments FinishMoments(const MomentsState& state);

// Adds the pairs. Requires: every earlier `count` was a multiple of kLanes.
void UpdatePairwise(const KernelTable& table, const PairOfRuns& runs, PairwiseState* state);
Pairwise FinishPairwise(const PairwiseState& state);

// One contiguous run with the active table.
Moments MomentsOf(DType dtype, const void* data, size_t count);
Pairwise PairwiseOf(const PairOfRuns& runs);

// Result of `first` followed by `second`, which must be combined in index order. Bit-identical to
// one run over both when `first` covers whole blocks and `second` at most one block. Requires: no
// exponents.
Moments Combine(const Moments& first, const Moments& second);
Pairwise Combine(const Pairwise& first, const Pairwise& second);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_KERNEL_TABLE_H_
