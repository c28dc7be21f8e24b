#include "pipeline/arrays/array_elements.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "pipeline/device_dump/host_tensor.h"
#include "tensor/half.h"

namespace plumbline {
namespace {

template <class T>
T Load(const TensorView& view, size_t i) {
  T value;
  std::memcpy(&value, view.data + i * sizeof(T), sizeof(T));
  return value;
}

// Calls `use` with the element as a number of C++; complex ones with both parts.
template <class Use>
auto WithElement(const TensorView& view, size_t i, const Use& use) {
  switch (view.dtype) {
    case DType::kBool:
      return use(Load<uint8_t>(view, i) != 0);
    case DType::kUInt8:
      return use(Load<uint8_t>(view, i));
    case DType::kUInt16:
      return use(Load<uint16_t>(view, i));
    case DType::kUInt32:
      return use(Load<uint32_t>(view, i));
    case DType::kUInt64:
      return use(Load<uint64_t>(view, i));
    case DType::kInt8:
      return use(Load<int8_t>(view, i));
    case DType::kInt16:
      return use(Load<int16_t>(view, i));
    case DType::kInt32:
      return use(Load<int32_t>(view, i));
    case DType::kInt64:
      return use(Load<int64_t>(view, i));
    case DType::kFloat32:
      return use(Load<float>(view, i));
    case DType::kFloat64:
      return use(Load<double>(view, i));
    case DType::kComplex64:
      return use(Load<float>(view, 2 * i), Load<float>(view, 2 * i + 1));
    case DType::kComplex128:
      return use(Load<double>(view, 2 * i), Load<double>(view, 2 * i + 1));
    default: {  // float16, bfloat16, float8
      uint16_t bits = 0;
      const size_t width = InfoOf(view.dtype).size_bytes;
      std::memcpy(&bits, view.data + i * width, width);
      return use(NarrowToFloat(*NarrowFormatOf(view.dtype), bits));
    }
  }
}

struct ToValue {
  template <class T>
  long double operator()(T value) const {
    return static_cast<long double>(value);
  }
  template <class T>
  long double operator()(T real, T imaginary) const {
    return std::hypot(static_cast<long double>(real), static_cast<long double>(imaginary));
  }
};

struct ToText {
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  template <class T>
  std::string operator()(T value) const {
    if constexpr (sizeof(T) == 1) return fmt::format("{}", static_cast<int>(value));
    std::string text = fmt::format("{}", value);
    const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
    return std::is_floating_point_v<T> && is_whole ? text + ".0" : text;
  }
  template <class T>
  std::string operator()(T real, T imaginary) const {
    return fmt::format("({}{:+}j)", real, imaginary);
  }
};

}  // namespace

long double ElementValue(const TensorView& view, size_t i) {
  return WithElement(view, i, ToValue());
}

std::string ElementText(const TensorView& view, size_t i) { return WithElement(view, i, ToText()); }

std::string ShapeTuple(std::span<const int64_t> sizes) {
  return pipeline::TupleText(Shape(sizes.begin(), sizes.end()));
}

}  // namespace plumbline
