// Single elements as numbers of C++. Loops over many elements are in kernels/.

#ifndef PLUMBLINE_TENSOR_ELEMENT_VALUE_H_
#define PLUMBLINE_TENSOR_ELEMENT_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "plumbline/tensor.h"
#include "tensor/half.h"

namespace plumbline {

// The number that begins at `at`, which need not be aligned.
template <class T>
T LoadAs(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// The element of a floating type of at most 16 bits.
inline float LoadNarrow(DType dtype, const std::byte* at) {
  const bool is_byte = InfoOf(dtype).size_bytes == 1;
  return NarrowToFloat(*NarrowFormatOf(dtype),
                       is_byte ? LoadAs<uint8_t>(at) : LoadAs<uint16_t>(at));
}

// What `use` makes of the element at `at`: a bool is one, floating types of at most 16 bits are
// floats, complex elements two arguments.
template <class Use>
auto VisitElement(DType dtype, const std::byte* at, const Use& use) {
  switch (dtype) {
    case DType::kBool:
      return use(LoadAs<uint8_t>(at) != 0);
    case DType::kUInt8:
      return use(LoadAs<uint8_t>(at));
    case DType::kUInt16:
      return use(LoadAs<uint16_t>(at));
    case DType::kUInt32:
      return use(LoadAs<uint32_t>(at));
    case DType::kUInt64:
      return use(LoadAs<uint64_t>(at));
    case DType::kInt8:
      return use(LoadAs<int8_t>(at));
    case DType::kInt16:
      return use(LoadAs<int16_t>(at));
    case DType::kInt32:
      return use(LoadAs<int32_t>(at));
    case DType::kInt64:
      return use(LoadAs<int64_t>(at));
    case DType::kFloat32:
      return use(LoadAs<float>(at));
    case DType::kFloat64:
      return use(LoadAs<double>(at));
    case DType::kComplex64:
      return use(LoadAs<float>(at), LoadAs<float>(at + sizeof(float)));
    case DType::kComplex128:
      return use(LoadAs<double>(at), LoadAs<double>(at + sizeof(double)));
    default:  // float16, bfloat16, float8
      return use(LoadNarrow(dtype, at));
  }
}

// Exact but for 64-bit integers beyond 2^53, which are rounded. A bool is the byte that is stored,
// whichever that is; a complex element is NaN.
inline double ElementAsDouble(DType dtype, const std::byte* at) {
  return VisitElement(dtype == DType::kBool ? DType::kUInt8 : dtype, at,
                      [](auto value, auto... imaginary) {
                        constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
                        return sizeof...(imaginary) == 0 ? static_cast<double>(value) : kNaN;
                      });
}

// Elements of a floating type of at most 16 bits as floats, in memory as they would be stored.
std::vector<std::byte> StoredAsFloats(DType dtype, std::span<const std::byte> elements);

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_ELEMENT_VALUE_H_
