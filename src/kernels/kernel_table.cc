#include "kernels/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/target_tables.h"

namespace plumbline::kernels {
namespace {

// Sum in the fixed order 8, 4, 2, 1.
double SumLanes(const double* lanes) {
  double half[kLanes / 2];
  for (size_t l = 0; l < 8; ++l) half[l] = lanes[l] + lanes[l + 8];
  for (size_t l = 0; l < 4; ++l) half[l] += half[l + 4];
  half[0] += half[2];
  half[1] += half[3];
  return half[0] + half[1];
}

// Which NaN an addition yields depends on the CPU and on the order of operands.
double Canonical(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

double BlockSum(const MomentsState& state) {
  return SumLanes(state.sum) + static_cast<double>(state.exact_sum);
}
double BlockSquares(const MomentsState& state) {
  return SumLanes(state.squares) + static_cast<double>(state.exact_squares);
}

void EndBlock(MomentsState* state) {
  state->total.sum += BlockSum(*state);
  state->total.sum_squares += BlockSquares(*state);
  std::fill_n(state->sum, kLanes, 0.0);
  std::fill_n(state->squares, kLanes, 0.0);
  state->exact_sum = 0;
  state->exact_squares = 0;
}

// -0 is below +0, which the plain comparison does not see.
bool Below(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }
double MaxOf(double a, double b) { return Below(a, b) ? b : a; }
double MinOf(double a, double b) { return Below(b, a) ? b : a; }

}  // namespace

const KernelTable& TableFor(CpuTarget target) {
#if defined(__x86_64__)
  if (target == CpuTarget::kAvx512) return kAvx512Table;
  if (target == CpuTarget::kAvx2) return kAvx2Table;
#endif
#if defined(__aarch64__)
  // NEON is part of the base architecture: the plain build already uses it.
  static const KernelTable neon = {
      CpuTarget::kNeon,        kBaselineTable.moments_part, kBaselineTable.pairwise_part,
      kBaselineTable.to_float, kBaselineTable.deviations,   kBaselineTable.spreads,
      kBaselineTable.likeness, kBaselineTable.multiply_panels,
      kBaselineTable.add_rotary_row, kBaselineTable.output_block, kBaselineTable.count_below,
      kBaselineTable.magnitudes, kBaselineTable.count_range, kBaselineTable.changes,
      kBaselineTable.gradient_part};
  if (target == CpuTarget::kNeon) return neon;
#endif
  return kBaselineTable;
}

const KernelTable& ActiveTable() {
  static const KernelTable& table = []() -> const KernelTable& {
    const Result<CpuTarget> chosen = ChooseTarget();
    return TableFor(chosen ? *chosen : UsableTargets().front());
  }();
  return table;
}

void UpdateMoments(const KernelTable& table, DType dtype, const void* data, size_t count,
                   MomentsState* state) {
  const size_t element_bytes = InfoOf(dtype).size_bytes;
  const auto* at = static_cast<const std::byte*>(data);
  while (count != 0) {
    const size_t room = kBlockElements - state->total.count % kBlockElements;
    const size_t part = std::min(count, room);
    table.moments_part(dtype, at, part, state);
    if (part == room) EndBlock(state);
    at += part * element_bytes;
    count -= part;
  }
}

Moments FinishMoments(const MomentsState& state) {
  Moments result = state.total;
  result.sum = Canonical(result.sum + BlockSum(state));
  result.sum_squares = Canonical(result.sum_squares + BlockSquares(state));
  return result;
}

Moments MomentsOf(DType dtype, const void* data, size_t count) {
  MomentsState state;
  UpdateMoments(ActiveTable(), dtype, data, count, &state);
  return FinishMoments(state);
}

namespace {

void EndBlock(PairwiseState* state) {
  Pairwise& total = state->total;
  total.dot += SumLanes(state->lanes[0]);
  total.target_squares += SumLanes(state->lanes[1]);
  total.golden_squares += SumLanes(state->lanes[2]);
  total.difference_squares += SumLanes(state->lanes[3]);
  for (auto& lanes : state->lanes) std::fill_n(lanes, kLanes, 0.0);
}

}  // namespace

void UpdatePairwise(const KernelTable& table, const PairOfRuns& runs, PairwiseState* state) {
  const size_t target_bytes = InfoOf(runs.target_dtype).size_bytes;
  const size_t golden_bytes = InfoOf(runs.golden_dtype).size_bytes;
  const auto* target = static_cast<const std::byte*>(runs.target);
  const auto* golden = static_cast<const std::byte*>(runs.golden);
  for (size_t left = runs.count; left != 0;) {
    const size_t room = kBlockElements - state->total.count % kBlockElements;
    const size_t part = std::min(left, room);
    table.pairwise_part({runs.target_dtype, target, runs.golden_dtype, golden, part}, state);
    if (part == room) EndBlock(state);
    target += part * target_bytes;
    golden += part * golden_bytes;
    left -= part;
  }
}

Pairwise FinishPairwise(const PairwiseState& state) {
  PairwiseState copy = state;
  EndBlock(&copy);
  return copy.total;
}

Pairwise PairwiseOf(const PairOfRuns& runs) {
  PairwiseState state;
  UpdatePairwise(ActiveTable(), runs, &state);
  return FinishPairwise(state);
}

Pairwise Combine(const Pairwise& first, const Pairwise& second) {
  Pairwise result = first;
  result.count += second.count;
  result.mismatch_count += second.mismatch_count;
  result.nonfinite_count += second.nonfinite_count;
  result.nonfinite_mismatch += second.nonfinite_mismatch;
  result.golden_zero_count += second.golden_zero_count;
  result.golden_zero_mismatch += second.golden_zero_mismatch;
  result.below_1e3 += second.below_1e3;
  result.below_5e3 += second.below_5e3;
  result.dot += second.dot;
  result.target_squares += second.target_squares;
  result.golden_squares += second.golden_squares;
  result.difference_squares += second.difference_squares;
  if (second.max_abs > first.max_abs) {
    result.max_abs = second.max_abs;
    result.max_abs_index = first.count + second.max_abs_index;
  }
  result.max_rel = std::max(first.max_rel, second.max_rel);
  result.max_ulp = std::max(first.max_ulp, second.max_ulp);
  if (first.mismatch_count == 0 && second.mismatch_count != 0) {
    result.first_mismatch = first.count + second.first_mismatch;
  }
  result.target_max = std::max(first.target_max, second.target_max);
  result.golden_max = std::max(first.golden_max, second.golden_max);
  return result;
}

Moments Combine(const Moments& first, const Moments& second) {
  Moments result;
  result.count = first.count + second.count;
  result.nan_count = first.nan_count + second.nan_count;
  result.inf_count = first.inf_count + second.inf_count;
  result.zero_count = first.zero_count + second.zero_count;
  result.max = MaxOf(first.max, second.max);
  result.min = MinOf(first.min, second.min);
  result.finite_max = MaxOf(first.finite_max, second.finite_max);
  result.finite_min = MinOf(first.finite_min, second.finite_min);
  result.sum = Canonical(first.sum + second.sum);
  result.sum_squares = Canonical(first.sum_squares + second.sum_squares);
  result.int_max = std::max(first.int_max, second.int_max);
  result.int_min = std::min(first.int_min, second.int_min);
  result.uint_max = std::max(first.uint_max, second.uint_max);
  result.uint_min = std::min(first.uint_min, second.uint_min);
  return result;
}

}  // namespace plumbline::kernels
