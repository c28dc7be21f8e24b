#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plumbline {
namespace {

// Decoding by the definition of the format, in double arithmetic.
double Definition(NarrowFormat f, uint32_t bits) {
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const int sign = (bits >> (width - 1)) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << f.mantissa_bits) - 1);
  const bool all_ones = exponent == (1 << f.exponent_bits) - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (f.unsigned_zero_nan && bits == 1u << (width - 1)) return nan;
  if (!f.unsigned_zero_nan && all_ones) {
    if (f.has_infinity) {
      return mantissa != 0 ? nan : sign * std::numeric_limits<double>::infinity();
    }
    if (mantissa == (1 << f.mantissa_bits) - 1) return nan;
  }
  const double significand = std::ldexp(mantissa, -f.mantissa_bits) + (exponent != 0 ? 1 : 0);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - f.bias);
}

class NarrowFormats : public ::testing::TestWithParam<NarrowFormat> {
 protected:
  [[nodiscard]] static NarrowFormat format() { return GetParam(); }
  [[nodiscard]] static uint32_t patterns() {
    return 1u << (1 + format().exponent_bits + format().mantissa_bits);
  }
};

INSTANTIATE_TEST_SUITE_P(Half, NarrowFormats,
                         ::testing::Values(kFloat16Format, kBFloat16Format, kFloat8E4M3FNFormat,
                                           kFloat8E5M2Format, kFloat8E4M3FNUZFormat,
                                           kFloat8E5M2FNUZFormat));

TEST_P(NarrowFormats, EveryPatternHasTheDefinedValue) {
  for (uint32_t bits = 0; bits < patterns(); ++bits) {
    const double expected = Definition(format(), bits);
    const double value = NarrowToFloat(format(), bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    }
  }
}

TEST_P(NarrowFormats, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < patterns(); ++bits) {
    const float value = NarrowToFloat(format(), bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(NarrowToFloat(format(), FloatToNarrow(format(), value)))) << bits;
    } else {
      ASSERT_EQ(FloatToNarrow(format(), value), bits);
    }
  }
}

// Between two neighbours the nearer one is taken, in the middle the even one.
TEST_P(NarrowFormats, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits + 1 < patterns() / 2; ++bits) {
    const double low = Definition(format(), bits);
    const double high = Definition(format(), bits + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const auto middle = static_cast<float>((low + high) / 2);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(FloatToNarrow(format(), middle), even);
    ASSERT_EQ(FloatToNarrow(format(), std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(
        FloatToNarrow(format(), std::nextafter(middle, std::numeric_limits<float>::infinity())),
        bits + 1);
  }
}

TEST(Half, TooLargeValuesBecomeInfinityOrNaN) {
  EXPECT_EQ(FloatToNarrow(kFloat16Format, 65520.0f), 0x7C00u);
  EXPECT_EQ(FloatToNarrow(kFloat16Format, 65519.0f), 0x7BFFu);
  EXPECT_EQ(FloatToNarrow(kFloat8E5M2Format, -1e9f), 0xFCu);
  EXPECT_EQ(FloatToNarrow(kFloat8E4M3FNFormat, 1e9f), 0x7Fu);
  EXPECT_EQ(FloatToNarrow(kFloat8E4M3FNUZFormat, 1e9f), 0x80u);
}

TEST(Half, NegativeValueThatRoundsToZeroIsZeroInFnuz) {
  EXPECT_EQ(FloatToNarrow(kFloat8E4M3FNUZFormat, -1e-20f), 0u);
  EXPECT_EQ(FloatToNarrow(kFloat8E4M3FNFormat, -1e-20f), 0x80u);
}

static_assert(NarrowToFloat(kBFloat16Format, 0x3F80) == 1.0f);

}  // namespace
}  // namespace plumbline
