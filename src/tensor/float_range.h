// The range of floating types: where values end and infinity begins.

#ifndef PLUMBLINE_TENSOR_FLOAT_RANGE_H_
#define PLUMBLINE_TENSOR_FLOAT_RANGE_H_

#include <cmath>
#include <limits>

#include "plumbline/tensor.h"
#include "tensor/half.h"

namespace plumbline {

// The largest finite number of a floating type; of a complex type that of a part. Of other types
// that of float32.
inline double LargestFinite(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return std::numeric_limits<double>::max();
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 0x1.FEp127;
    case DType::kFloat8E4M3FN:
      return 448;
    case DType::kFloat8E4M3FNUZ:
      return 240;
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 57344;
    default:
      return std::numeric_limits<float>::max();
  }
}

// Whether `value` becomes NaN or infinite when it is rounded to nearest in a floating type: 65520
// does in float16, 65519 does not. Of complex types a part.
inline bool RoundsToNonFinite(DType dtype, double value) {
  if (dtype == DType::kFloat64 || dtype == DType::kComplex128) return !std::isfinite(value);
  const auto narrow = static_cast<float>(value);
  const NarrowFormat* const format = NarrowFormatOf(dtype);
  if (format == nullptr) return !std::isfinite(narrow);
  return !std::isfinite(NarrowToFloat(*format, FloatToNarrow(*format, narrow)));
}

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_FLOAT_RANGE_H_
