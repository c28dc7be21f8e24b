// Every number that an output is judged by, from one pass over the two sides.
//
// Notation: b the benchmark, d the device, n elements; b' is b rounded to the type of d. The sides
// are compared in the wider of their types, at least float32 (float32 where d is bfloat16), in
// which each ae = |d - b| and each re = ae / (|b| + eps) is rounded; sums are kept in double, in
// lanes (docs/design/numerics.md), so that no number depends on the CPU or the count of threads.
// F: elements of which d and b' are finite. S: of F, those with |b| <= small value. N: others of F.
// Complex numbers count as two elements each, their parts. A device of float8 is compared with b'
// in place of b.

#ifndef PLUMBLINE_PRECHECK_OUTPUT_METRICS_H_
#define PLUMBLINE_PRECHECK_OUTPUT_METRICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "plumbline/tensor.h"
#include "precheck/outcome.h"
#include "precheck/standards.h"

namespace plumbline::precheck {

// Two contiguous arrays of `count` elements.
struct OutputPair {
  DType bench_dtype = DType::kFloat32;
  const void* bench = nullptr;
  DType device_dtype = DType::kFloat32;
  const void* device = nullptr;
  size_t count = 0;
  // The type whose limits apply where it is not that of the device: of relative errors, that of an
  // autocast region in which it may have computed.
  std::optional<DType> limits_of = {};
};

// Why a pair has no cosine, or how it came about.
enum class CosineCase : uint8_t {
  kPlain,
  kOneElement,  // of one element: nothing to see
  kBothZero,    // no magnitude of either side above 2.22e-16
  kBenchZero,   // none of the benchmark
  kDeviceZero,  // none of the device
  kNotFinite,   // NaN or infinity on a side: the cosine is NaN
};

struct FloatMetrics {
  uint64_t count = 0;      // n
  bool is_double = false;  // compared in float64: cells of max_abs_error etc. are doubles
  CosineCase cosine_case = CosineCase::kPlain;
  double cosine = 0;
  double max_abs_error = 0;              // max(ae); NaN where one is
  double bench_max = 0, device_max = 0;  // max |b|, max |d|
  bool has_not_finite = false;           // NaN or infinity on a side
  // Shares of elements with re < 0.01, 0.001 and 0.0001; the last not of 16 bits and less.
  double hundredth = 1, thousandth = 1, ten_thousandth = 1;
  uint64_t mismatches = 0;  // b != d; NaN equals NaN
  double error_rate = 0;    // of these, of n

  uint64_t not_finite = 0, small = 0, normal = 0;  // elements outside F, in S, in N
  // Outside F: share of elements with |clip(d) - clip(b')| / (|b| + eps) > rtol, clip() to the
  // finite range of the type of d; both NaN is good; of an infinite b, d has to be the same one, or
  // clip(d) = clip(b').
  double inf_nan_error_ratio = 0;
  double rel_error_ratio = 0;  // N: share with re > rtol
  double abs_error_ratio = 0;  // S: share with ae > atol
  // N: sqrt(m (n / (n - c + 0.0001) + 0.0001)); m the mean over n of ae^2, 0 outside N; c = n - |N|
  double rmse = 0;
  double max_rel_error = 0, mean_rel_error = 0;  // N
  double error_balance = 0;                      // |count(d > b') - count(d < b')| / n

  // |d - b| 2^(p - E), E = max(floor(log2 |b|), Emin), 0 for b = 0; largest, mean, and the share
  // above the limit of the type. Of float8 see kernels/output_sums.h.
  double max_ulp = 0, mean_ulp = 0, ulp_proportion = 0;
  uint64_t zero_bench_ulps = 0;  // elements with b = 0 and d != 0: measured against the ulp of 1
};

// Requires: both types are floats, or both complex; count > 0. Cells of other standards than
// `standard` are 0, but those of the status: all down to `error_rate`. Large arrays are shared out
// among the threads of the surrounding RunWithThreads().
FloatMetrics MeasureFloats(const OutputPair& pair, Standard standard);

struct ExactMetrics {
  uint64_t count = 0;
  uint64_t mismatches = 0;
  double error_rate = 0;
  double max_abs_error = 0;
};
// Requires: both types are bool or integers, of any width; count > 0. Values are compared exactly.
ExactMetrics MeasureExact(const OutputPair& pair);

// Elements that are 0, and that are NaN or infinite.
struct SpecialCounts {
  uint64_t zeros = 0;
  uint64_t not_finite = 0;
};
SpecialCounts CountSpecials(DType dtype, const void* data, size_t count);

// What a report needs to explain a row: a second pass, for rows that do not pass.
FailureFacts ExplainPair(const OutputPair& pair);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OUTPUT_METRICS_H_
