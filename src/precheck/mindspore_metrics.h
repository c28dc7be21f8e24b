// How far a MindSpore result is from its PyTorch benchmark: the three numbers of the pre-check's
// details file (docs/reference/precheck.md, "MindSpore").

#ifndef PLUMBLINE_PRECHECK_MINDSPORE_METRICS_H_
#define PLUMBLINE_PRECHECK_MINDSPORE_METRICS_H_

#include <cstdint>

#include "plumbline/tensor.h"

namespace plumbline::precheck {

// Of two tensors of equal shape, both taken as float64. b: benchmark, t: tested.
struct MindSporeMetrics {
  double cosine = 0;         // (1e-8 + b.t) / (1e-8 + |b| |t|)
  double max_abs_error = 0;  // largest |b - t|; NaN if any is
  double max_rel_error = 0;  // largest |b - t| / (|b| + 1e-8 where b is 0); NaN if any is

  // What the three do not tell. "Finite" pairs are finite on both sides.
  uint64_t nonfinite_count = 0;    // pairs with NaN or infinity on either side
  uint64_t nonfinite_differs = 0;  // of these: not NaN on both sides, nor the same infinity
  double finite_max_abs = 0;       // largest |b - t| of finite pairs
  double bench_magnitude = 0;      // largest |b| of finite pairs
  double tested_magnitude = 0;     // largest |t| of finite pairs
};

// Differences of 64-bit integers are exact, where float64 would hide them; otherwise the arithmetic
// is that of float64, and squares that float64 cannot hold are scaled. Requires: equal shapes, both
// contiguous, at least one element, no complex numbers.
MindSporeMetrics MeasureMindSpore(const TensorView& bench, const TensorView& tested);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_MINDSPORE_METRICS_H_
