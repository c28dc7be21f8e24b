// Bit conversions between float and the narrow floating formats: float16, bfloat16 and the four
// float8 forms. All constexpr and exact on the way to float; to the narrow type they round to
// nearest, ties to even. Used for single values and by tests; the vectorised forms of the same
// conversions are in kernels/convert.inl.

#ifndef PLUMBLINE_TENSOR_HALF_H_
#define PLUMBLINE_TENSOR_HALF_H_

#include <bit>
#include <cstdint>

#include "plumbline/tensor.h"

namespace plumbline {

// A floating format of at most 16 bits: sign, exponent, mantissa from the top.
struct NarrowFormat {
  int mantissa_bits;  // stored bits, without the hidden one
  int exponent_bits;
  int bias;
  bool has_infinity;       // an all-ones exponent means infinity or NaN
  bool unsigned_zero_nan;  // "fnuz": the pattern of -0 is the only NaN
};

inline constexpr NarrowFormat kFloat16Format = {10, 5, 15, true, false};
inline constexpr NarrowFormat kBFloat16Format = {7, 8, 127, true, false};
inline constexpr NarrowFormat kFloat8E4M3FNFormat = {3, 4, 7, false, false};
inline constexpr NarrowFormat kFloat8E5M2Format = {2, 5, 15, true, false};
inline constexpr NarrowFormat kFloat8E4M3FNUZFormat = {3, 4, 8, false, true};
inline constexpr NarrowFormat kFloat8E5M2FNUZFormat = {2, 5, 16, false, true};

// The format of a floating dtype of at most 16 bits; null for any other dtype.
constexpr const NarrowFormat* NarrowFormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return &kFloat16Format;
    case DType::kBFloat16:
      return &kBFloat16Format;
    case DType::kFloat8E4M3FN:
      return &kFloat8E4M3FNFormat;
    case DType::kFloat8E5M2:
      return &kFloat8E5M2Format;
    case DType::kFloat8E4M3FNUZ:
      return &kFloat8E4M3FNUZFormat;
    case DType::kFloat8E5M2FNUZ:
      return &kFloat8E5M2FNUZFormat;
    default:
      return nullptr;
  }
}

// 2^exponent for -126 <= exponent <= 127.
constexpr float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// The value of `bits` in `format`. NaN gives a quiet NaN with the sign of the input.
constexpr float NarrowToFloat(NarrowFormat format, uint32_t bits) {
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const uint32_t sign = (bits >> (width - 1)) & 1u;
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const uint32_t exponent = (bits >> format.mantissa_bits) & exponent_mask;
  const uint32_t mantissa = bits & mantissa_mask;
  const uint32_t float_sign = sign << 31;
  const uint32_t quiet_nan = 0x7FC00000u;
  if (format.unsigned_zero_nan) {
    if (sign == 1 && exponent == 0 && mantissa == 0) return std::bit_cast<float>(quiet_nan);
  } else if (format.has_infinity) {
    if (exponent == exponent_mask) {
      const uint32_t payload = mantissa << (23 - format.mantissa_bits);
      return std::bit_cast<float>(float_sign |
                                  (mantissa != 0 ? (quiet_nan | payload) : 0x7F800000u));
    }
  } else if (exponent == exponent_mask && mantissa == mantissa_mask) {
    return std::bit_cast<float>(float_sign | quiet_nan);
  }
  if (exponent != 0) {
    const uint32_t rebased = static_cast<uint32_t>(static_cast<int>(exponent) - format.bias + 127);
    return std::bit_cast<float>(float_sign | (rebased << 23) |
                                (mantissa << (23 - format.mantissa_bits)));
  }
  if (format.exponent_bits == 8) {  // bfloat16: a float denormal with the same exponent
    return std::bit_cast<float>(float_sign | (mantissa << (23 - format.mantissa_bits)));
  }
  const float magnitude =
      static_cast<float>(mantissa) * PowerOfTwo(1 - format.bias - format.mantissa_bits);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | float_sign);
}

// The bits of `value` in `format`, rounded to nearest even. Values beyond the largest finite one
// become infinity, or NaN where the format has no infinity (as torch converts). NaN stays NaN.
constexpr uint32_t FloatToNarrow(NarrowFormat format, float value) {
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 31) << (width - 1);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const uint32_t top = (1u << (width - 1)) - 1;  // all magnitude bits set
  uint32_t infinity = exponent_mask << format.mantissa_bits;
  uint32_t nan = sign | infinity | (1u << (format.mantissa_bits - 1));
  uint32_t overflow = sign | infinity;
  uint32_t largest = infinity - 1;
  if (format.unsigned_zero_nan) {
    nan = overflow = 1u << (width - 1);
    largest = top;
  } else if (!format.has_infinity) {
    nan = overflow = sign | top;
    largest = top - 1;
  }
  if (magnitude > 0x7F800000u) return nan;
  if (magnitude == 0x7F800000u) return overflow;
  const int float_exponent = static_cast<int>(magnitude >> 23);
  const int exponent = (float_exponent == 0 ? 1 : float_exponent) - 127 + format.bias;
  const uint32_t significand = (magnitude & 0x7FFFFFu) | (float_exponent == 0 ? 0u : 0x800000u);
  // Below the normal range the significand is shifted further, which makes a denormal.
  const int shift = 23 - format.mantissa_bits + (exponent < 1 ? 1 - exponent : 0);
  uint32_t result = 0;
  if (shift < 32) {
    const uint64_t wide = significand;
    const uint64_t half = uint64_t{1} << (shift - 1);
    const uint64_t odd = (wide >> shift) & 1u;
    result = static_cast<uint32_t>((wide + half - 1 + odd) >> shift);
  }
  // The hidden bit of a normal value adds one to the exponent field, and so does a carry.
  if (exponent > 1) result += static_cast<uint32_t>(exponent - 1) << format.mantissa_bits;
  if (result > largest) return overflow;
  if (format.unsigned_zero_nan && result == 0) return 0;
  return sign | result;
}

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_HALF_H_
