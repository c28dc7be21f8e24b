#include "pipeline/device_dump/tensor_extremes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/number_text.h"
#include "kernels/kernel_table.h"

namespace plumbline::pipeline {
namespace {

// Integers that a double may not hold.
template <class T>
TensorExtremes OfIntegers(const acl::Elements& elements) {
  T max = std::numeric_limits<T>::lowest(), min = std::numeric_limits<T>::max();
  double sum = 0;
  const size_t count = elements.bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, elements.bytes.data() + i * sizeof(T), sizeof(T));
    max = std::max(max, value);
    min = std::min(min, value);
    sum += static_cast<double>(value);
  }
  return {std::to_string(max), std::to_string(min), PythonFloat(sum / static_cast<double>(count))};
}

std::string Spelled(DTypeKind kind, double value) {
  if (kind == DTypeKind::kBool) return value != 0 ? "True" : "False";
  if (kind == DTypeKind::kFloat) return PythonFloat(value);
  return std::to_string(static_cast<int64_t>(value));
}

}  // namespace

TensorExtremes ExtremesOf(const acl::Elements& elements) {
  if (elements.dtype == DType::kInt64) return OfIntegers<int64_t>(elements);
  if (elements.dtype == DType::kUInt64) return OfIntegers<uint64_t>(elements);
  const DTypeInfo& info = InfoOf(elements.dtype);
  const size_t count = elements.bytes.size() / info.size_bytes;
  const kernels::Moments moments = kernels::MomentsOf(elements.dtype, elements.bytes.data(), count);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool has_nan = moments.nan_count > 0;
  return {Spelled(info.kind, has_nan ? nan : moments.max),
          Spelled(info.kind, has_nan ? nan : moments.min),
          PythonFloat(moments.sum / static_cast<double>(count))};
}

}  // namespace plumbline::pipeline
