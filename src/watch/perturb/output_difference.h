// How far the outputs of the two runs of a call differ, and whether that is too far.

#ifndef PLUMBLINE_WATCH_PERTURB_OUTPUT_DIFFERENCE_H_
#define PLUMBLINE_WATCH_PERTURB_OUTPUT_DIFFERENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/perturbation.h"
#include "kernels/tensor_scan.h"
#include "plumbline/tensor.h"

namespace plumbline::perturb {

// How two outputs are compared.
struct RatioRule {
  double tolerance = 0;         // smaller magnitudes count as this
  bool sees_non_finite = true;  // NaN or Inf on one side only is a difference
  bool is_mindspore = false;    // upstream's other rule: elements below the tolerance are equal
};

// What one pass over both outputs yields. `original` is a, `second` is b.
struct RatioSums {
  // Of max(|a|, tol) / max(|b|, tol), NaN left out; of the other rule, of a / b and of b / a.
  double max_ratio = 1, min_ratio = 1;
  double min_product = 0;  // of a * b
  double change = 0;       // largest |a - b| / max(|b|, tol) of finite pairs
  uint64_t nan_mismatches = 0, inf_mismatches = 0;
};

// Requires: equal sizes. Elements that are equal in their bits cost no arithmetic. `team`: as of
// AddNoise().
RatioSums CompareOutputs(const RatioRule& rule, const TensorView& original,
                         const TensorView& second, const kernels::Team* team);

// max_rel of a row.
struct Difference {
  double max_rel = 0;
  std::string_view word;  // in place of a number: "symbol_flipping", "nan_mismatch" ...; else empty
  double change = 0;      // RatioSums::change

  [[nodiscard]] double ratio() const { return max_rel + 1; }  // 1 for a word: as preheat counts
};
Difference DifferenceOf(const RatioRule& rule, const RatioSums& sums);
// Whether outputs that differ so count as the same; `threshold` is T of ThresholdOf().
bool IsConsistent(const Difference& difference, double threshold);

// T: a ratio from 1 / T to T is no difference. By the dtype of the original output, or of anything
// that is no tensor.
double ThresholdOf(std::optional<DType> dtype, Perturbation mode);

// The comparison with a run on the CPU (to_cpu, preheat).
struct CpuVerdict {
  bool is_consistent = true;
  bool is_golden_finite = true;  // else, unless `sees_non_finite`, nothing was compared
  Difference difference;         // max_rel and change: largest |a - g| / max(|g|, tol)
};
// `actual` is the original output, `golden` that of the CPU. Pairs of the same NaN or Inf are left
// out; other such elements are a difference. Without `sees_non_finite`, as upstream: those of
// `actual` count as 1, one of `golden` makes all consistent. Requires: equal sizes.
CpuVerdict CompareWithCpu(const TensorView& actual, const TensorView& golden,
                          bool sees_non_finite);

// How an output was replaced (handler_type fix).
struct Replacement {
  double max_abs = 0;  // of finite elements
  uint64_t changed = 0, elements = 0;
};
// Requires: equal sizes.
Replacement ReplacementOf(const TensorView& original, const TensorView& replacement);

// Two floats of Python: relative closeness 1e-9, with 1e-8 added to both zeros.
bool AreClose(double a, double b);

}  // namespace plumbline::perturb

#endif  // PLUMBLINE_WATCH_PERTURB_OUTPUT_DIFFERENCE_H_
