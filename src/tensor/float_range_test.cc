#include "tensor/float_range.h"

#include <gtest/gtest.h>

#include <limits>

namespace plumbline {
namespace {

constexpr DType kFloats[] = {
    DType::kFloat16, DType::kBFloat16,     DType::kFloat32,    DType::kFloat64, DType::kFloat8E4M3FN,
    DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ};

TEST(FloatRange, TheLargestNumberStaysAndItsDoubleDoesNot) {
  for (const DType dtype : kFloats) {
    const double largest = LargestFinite(dtype);
    for (const double sign : {-1.0, 1.0}) {
      EXPECT_FALSE(RoundsToNonFinite(dtype, sign * largest)) << InfoOf(dtype).name;
      EXPECT_TRUE(RoundsToNonFinite(dtype, sign * largest * 2)) << InfoOf(dtype).name;
    }
  }
}

// As numpy.float16() and torch.tensor().to(torch.bfloat16) round: half a spacing beyond the largest
// number is infinite, what is nearer is not.
TEST(FloatRange, RoundingDecidesAtTheEnd) {
  EXPECT_FALSE(RoundsToNonFinite(DType::kFloat16, 65519));
  EXPECT_TRUE(RoundsToNonFinite(DType::kFloat16, 65520));
  EXPECT_FALSE(RoundsToNonFinite(DType::kBFloat16, 0x1.FEFFp127));
  EXPECT_TRUE(RoundsToNonFinite(DType::kBFloat16, 0x1.FFp127));
  EXPECT_TRUE(RoundsToNonFinite(DType::kFloat32, 1e39));
  EXPECT_FALSE(RoundsToNonFinite(DType::kFloat64, 1e300));
  EXPECT_FALSE(RoundsToNonFinite(DType::kFloat8E4M3FN, 460));
  EXPECT_TRUE(RoundsToNonFinite(DType::kFloat8E4M3FN, 480));
}

TEST(FloatRange, NaNIsNoNumberOfAnyType) {
  for (const DType dtype : kFloats) {
    EXPECT_TRUE(RoundsToNonFinite(dtype, std::numeric_limits<double>::quiet_NaN()));
  }
}

}  // namespace
}  // namespace plumbline
