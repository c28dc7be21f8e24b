#include "record/tensor_stats.h"

#include <cmath>
#include <limits>

#include "tensor/half.h"

namespace plumbline {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double RoundToNarrow(NarrowFormat format, double value) {
  return static_cast<double>(
      NarrowToFloat(format, FloatToNarrow(format, static_cast<float>(value))));
}

// `value` rounded to the dtype a statistic is printed in: its own for floats (moduli of complex
// numbers in that of one part), double for integers.
double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat16:
      return RoundToNarrow(kFloat16Format, value);
    case DType::kBFloat16:
      return RoundToNarrow(kBFloat16Format, value);
    case DType::kFloat32:
    case DType::kComplex64:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      // float8 has too few digits for a mean or a norm; torch computes neither.
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

// Upstream's Max_except_inf_nan: over finite elements; without any, over the non-NaN ones;
// without any, NaN.
double ExtremeExceptNonFinite(const kernels::Moments& sums, double finite, double any) {
  if (sums.nan_count == sums.count) return kNan;
  const bool has_finite = sums.nan_count + sums.inf_count < sums.count;
  return has_finite ? finite : any;
}

Statistic ScalarValue(DTypeKind kind, const kernels::Moments& sums) {
  if (kind == DTypeKind::kSigned) return sums.int_max;
  if (kind == DTypeKind::kUnsigned) {
    // Values of uint64 beyond int64 do not fit a Statistic as an integer.
    if (sums.uint_max > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return static_cast<double>(sums.uint_max);
    }
    return static_cast<int64_t>(sums.uint_max);
  }
  return sums.nan_count > 0 ? kNan : sums.max;
}

}  // namespace

TensorStats ComputeStats(DType dtype, const kernels::Moments& sums, bool is_scalar) {
  TensorStats stats;
  if (sums.count == 0) return stats;
  const DTypeKind kind = InfoOf(dtype).kind;
  if (kind == DTypeKind::kBool) {
    stats.max = sums.zero_count < sums.count;
    stats.min = sums.zero_count == 0;
    return stats;
  }
  if (is_scalar && kind != DTypeKind::kComplex) {
    stats.max = stats.min = stats.mean = stats.norm = ScalarValue(kind, sums);
  } else {
    const bool has_nan = sums.nan_count > 0;
    stats.max = has_nan ? kNan : RoundTo(dtype, sums.max);
    stats.min = has_nan ? kNan : RoundTo(dtype, sums.min);
    stats.mean = RoundTo(dtype, sums.sum / static_cast<double>(sums.count));
    if (kind != DTypeKind::kComplex) stats.norm = RoundTo(dtype, std::sqrt(sums.sum_squares));
  }
  const double* max = std::get_if<double>(&stats.max);
  const double* min = std::get_if<double>(&stats.min);
  if (max != nullptr && !std::isfinite(*max)) {
    stats.max_finite = RoundTo(dtype, ExtremeExceptNonFinite(sums, sums.finite_max, sums.max));
  }
  if (min != nullptr && !std::isfinite(*min)) {
    stats.min_finite = RoundTo(dtype, ExtremeExceptNonFinite(sums, sums.finite_min, sums.min));
  }
  return stats;
}

}  // namespace plumbline
