#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/target_tables.h"
#include "tensor/half.h"

namespace plumbline::kernels {
namespace {

// Signed number of representable values above zero. `width` bits of sign and magnitude.
int64_t Ordinal(uint64_t bits, int width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

// A double rounded to float by "round to odd", so that a second rounding to at most 16 bits gives
// the correctly rounded result.
float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool too_large = std::abs(static_cast<double>(nearest)) > std::abs(value);
  if ((bits & 1u) == 0) bits = too_large ? bits - 1 : bits + 1;
  return std::bit_cast<float>(bits);
}
float RoundToOdd(float value) { return value; }

template <class T>
uint64_t MaxUlp(DType golden_dtype, const T* target, const void* golden, size_t count) {
  const NarrowFormat* format = NarrowFormatOf(golden_dtype);
  const size_t size = InfoOf(golden_dtype).size_bytes;
  const int width = 8 * static_cast<int>(size);
  const auto* at = static_cast<const std::byte*>(golden);
  uint64_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t golden_bits = 0;
    std::memcpy(&golden_bits, at + i * size, size);
    const uint32_t target_bits = format != nullptr
                                     ? FloatToNarrow(*format, RoundToOdd(target[i]))
                                     : std::bit_cast<uint32_t>(static_cast<float>(target[i]));
    const int64_t distance = Ordinal(target_bits, width) - Ordinal(golden_bits, width);
    largest = std::max(largest, static_cast<uint64_t>(distance < 0 ? -distance : distance));
  }
  return largest;
}

}  // namespace

uint64_t MaxUlpRounded(DType golden_dtype, const float* target, const void* golden, size_t count) {
  return MaxUlp(golden_dtype, target, golden, count);
}
uint64_t MaxUlpRounded(DType golden_dtype, const double* target, const void* golden, size_t count) {
  return MaxUlp(golden_dtype, target, golden, count);
}

}  // namespace plumbline::kernels
