// Generated inputs for the kernels: every dtype, the kinds of values that go wrong. Tests only.

#ifndef PLUMBLINE_KERNELS_INPUTS_FOR_TEST_H_
#define PLUMBLINE_KERNELS_INPUTS_FOR_TEST_H_

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "plumbline/tensor.h"
#include "tensor/half.h"

namespace plumbline::kernels {

// What the elements of a generated input look like.
enum class Fill { kRandomBits, kModerate, kEqual, kTiny, kSignedZeros, kFewSpecials };
inline constexpr Fill kAllFills[] = {Fill::kRandomBits, Fill::kModerate,    Fill::kEqual,
                                     Fill::kTiny,       Fill::kSignedZeros, Fill::kFewSpecials};

inline double FillValue(Fill fill, std::mt19937_64& random, size_t i) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1;  // [-1, 1)
  switch (fill) {
    case Fill::kEqual:
      return 1.25;
    case Fill::kTiny:
      return unit * 0x1p-130;
    case Fill::kSignedZeros:
      return (random() & 1) != 0 ? 0.0 : -0.0;
    case Fill::kFewSpecials:
      if (random() % 37 == 0) return std::numeric_limits<double>::quiet_NaN();
      if (random() % 41 == 0) return i % 2 == 0 ? infinity : -infinity;
      return unit * 3;
    default:
      return unit * 100;
  }
}

// `count` elements, deterministic in its arguments.
inline std::vector<std::byte> MakeInput(DType dtype, size_t count, Fill fill, uint64_t seed) {
  std::mt19937_64 random(seed);
  const DTypeInfo& info = InfoOf(dtype);
  std::vector<std::byte> bytes(count * info.size_bytes);
  const bool is_float = info.kind == DTypeKind::kFloat || info.kind == DTypeKind::kComplex;
  if (fill == Fill::kRandomBits || (!is_float && fill != Fill::kEqual)) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (fill == Fill::kSignedZeros) std::fill(bytes.begin(), bytes.end(), std::byte{0});
    return bytes;
  }
  if (!is_float) {
    std::fill(bytes.begin(), bytes.end(), std::byte{3});
    return bytes;
  }
  const size_t parts = info.kind == DTypeKind::kComplex ? 2 * count : count;
  const size_t part_bytes = parts == 0 ? 0 : bytes.size() / parts;
  for (size_t i = 0; i < parts; ++i) {
    const double value = FillValue(fill, random, i);
    std::byte* at = bytes.data() + i * part_bytes;
    if (part_bytes == 8) {
      std::memcpy(at, &value, 8);
    } else if (part_bytes == 4) {
      const auto single = static_cast<float>(value);
      std::memcpy(at, &single, 4);
    } else {
      const uint32_t bits = FloatToNarrow(*NarrowFormatOf(dtype), static_cast<float>(value));
      std::memcpy(at, &bits, part_bytes);
    }
  }
  return bytes;
}

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_INPUTS_FOR_TEST_H_
