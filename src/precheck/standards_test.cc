#include "precheck/standards.h"

#include <gtest/gtest.h>

namespace plumbline::precheck::standards_test {
namespace {

TEST(Standards, AnApiIsJudgedByTheListThatHasIt) {
  EXPECT_EQ(StandardOfApi("mul_"), Standard::kAbsolute);
  EXPECT_EQ(StandardOfApi("__isub__"), Standard::kAbsolute);
  EXPECT_EQ(StandardOfApi("abs"), Standard::kBinary);
  EXPECT_EQ(StandardOfApi("type_as"), Standard::kBinary);
  EXPECT_EQ(StandardOfApi("__matmul__"), Standard::kUlp);
  EXPECT_EQ(StandardOfApi("sspaddmm"), Standard::kUlp);
  EXPECT_EQ(StandardOfApi("conv2d"), Standard::kThousandth);
  EXPECT_EQ(StandardOfApi("test_api"), Standard::kAccumulative);
}

TEST(Standards, EveryOtherApiIsComparedWithABenchmark) {
  for (const char* api : {"softmax", "conv3d", "Relu", "linalg.inv", "", "ab", "zzz"}) {
    EXPECT_EQ(StandardOfApi(api), Standard::kBenchmark) << api;
  }
}

TEST(Standards, TwoSidedStandardLooksAtTheTypeFirst) {
  EXPECT_EQ(TwoSidedStandardOf("matmul", "torch.float16"), Standard::kUlp);
  EXPECT_EQ(TwoSidedStandardOf("matmul", "torch.complex64"), Standard::kUlp);
  EXPECT_EQ(TwoSidedStandardOf("matmul", "torch.int64"), Standard::kBinary);
  EXPECT_EQ(TwoSidedStandardOf("matmul", "<class 'int'>"), Standard::kBinary);
  EXPECT_EQ(TwoSidedStandardOf("softmax", "torch.bool"), Standard::kBinary);
  EXPECT_EQ(TwoSidedStandardOf("softmax", " "), Standard::kBinary);
}

TEST(Standards, LimitsAreThoseOfTheDeviceType) {
  const FloatLimits half = LimitsOf(Standard::kAbsolute, DType::kFloat16);
  EXPECT_EQ(half.small_value, 0.0009765625);
  EXPECT_EQ(half.small_atol, 0.0000152587890625);
  EXPECT_EQ(half.rtol, 0.0009765625);
  EXPECT_EQ(LimitsOf(Standard::kBenchmark, DType::kFloat16).small_atol, 1e-16);
  EXPECT_EQ(LimitsOf(Standard::kAbsolute, DType::kBFloat16).rtol, 0.00390625);
  EXPECT_EQ(LimitsOf(Standard::kBenchmark, DType::kFloat32).small_atol, 9.313225746154785e-10);
  const FloatLimits wide = LimitsOf(Standard::kAccumulative, DType::kFloat32);
  EXPECT_EQ(wide.small_value, 1);
  EXPECT_EQ(wide.small_atol, 0.00048828125);
  EXPECT_EQ(wide.rtol, 0.00048828125);
  EXPECT_EQ(wide.balance, 0.00006103515625);
}

TEST(Standards, EpsilonIsThatOfTheBenchmarkButForBFloat16) {
  EXPECT_EQ(RelativeEpsilon(DType::kFloat64, DType::kFloat32), 2.220446049250313e-16);
  EXPECT_EQ(RelativeEpsilon(DType::kFloat32, DType::kFloat16), 1.1920928955078125e-07);
  EXPECT_EQ(RelativeEpsilon(DType::kFloat16, DType::kFloat16), 0.0009765625);
  EXPECT_EQ(RelativeEpsilon(DType::kFloat32, DType::kBFloat16), 0.00390625);
}

TEST(Standards, TwoSidedLimits) {
  EXPECT_EQ(RatioFloor(DType::kFloat16), 0.00048828125);
  EXPECT_EQ(RatioFloor(DType::kBFloat16), 0.00390625);
  EXPECT_EQ(RatioFloor(DType::kFloat64), 0.00006103515625);
  EXPECT_TRUE(IsNeverTwoSided("torch.float64"));
  EXPECT_TRUE(IsNeverTwoSided("torch.complex64"));
  EXPECT_FALSE(IsNeverTwoSided("torch.float32"));
  EXPECT_FALSE(IsNeverTwoSided("<class 'int'>"));
}

TEST(Standards, SharesAreJudgedAtTheExactLimit) {
  EXPECT_EQ(kThousandthShareAbove, 0.999);
  EXPECT_EQ(kHundredthShareAbove, 0.99);
}

TEST(Standards, EveryStandardHasItsOwnDisplayName) {
  for (int i = 0; i < static_cast<int>(Standard::kBenchmark); ++i) {
    EXPECT_NE(DisplayName(static_cast<Standard>(i)), DisplayName(static_cast<Standard>(i + 1)));
  }
  EXPECT_EQ(DisplayName(Standard::kUlp), "ULP误差比对法");
}

}  // namespace
}  // namespace plumbline::precheck::standards_test
