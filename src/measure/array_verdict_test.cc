#include "measure/array_verdict.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "tensor/half.h"

namespace plumbline::measure {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

ArrayVerdict Judge(const std::vector<float>& target, const std::vector<float>& golden) {
  const auto sums = kernels::PairwiseOf(
      {DType::kFloat32, target.data(), DType::kFloat32, golden.data(), target.size()});
  return JudgeArrays(sums, DType::kFloat32, DType::kFloat32);
}

ArrayVerdict JudgeEqual(const std::vector<float>& values) {
  const std::vector<int64_t> sizes{static_cast<int64_t>(values.size())}, strides{1};
  return JudgeEqualArrays(
      {DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), sizes, strides});
}

TEST(ArrayVerdict, GrowsWithTheError) {
  EXPECT_EQ(Judge({1, 2}, {1, 2}).verdict, Verdict::kSame);
  EXPECT_EQ(Judge({1, 2.0000002F}, {1, 2}).verdict, Verdict::kWithinNoise);
  EXPECT_EQ(Judge({1, 2.001F}, {1, 2}).verdict, Verdict::kSuspicious);
  EXPECT_EQ(Judge({1, 2.5F}, {1, 2}).verdict, Verdict::kBroken);
  EXPECT_EQ(Judge({1, 2.5F}, {1, 2}).reason, "exceeds-rounding");
}

TEST(ArrayVerdict, NothingThatProvesLittleIsGood) {
  EXPECT_EQ(Judge({0, -0.0F}, {0, 0}).reason, "zero-both");
  EXPECT_EQ(Judge({0, 0}, {0, 1}).reason, "zero-target");
  EXPECT_EQ(Judge({0, 1}, {0, 0}).reason, "zero-golden");
  EXPECT_EQ(Judge({kNan, 1}, {kNan, 1}).reason, "nonfinite-both");
  EXPECT_EQ(Judge({kNan, 1}, {1, kNan}).verdict, Verdict::kBroken);
  EXPECT_EQ(Judge({kInf, 1}, {-kInf, 1}).verdict, Verdict::kBroken);
  EXPECT_EQ(Judge({kNan, 1}, {kNan, 1.0000001F}).verdict, Verdict::kNotComparable);
  EXPECT_EQ(Judge({kNan, 0}, {kNan, 0}).reason, "nonfinite-both");
  EXPECT_EQ(JudgeEqual({}).reason, "empty");
  EXPECT_EQ(JudgeEqual({0, 0}).reason, "zero-both");
  EXPECT_EQ(JudgeEqual({1, kNan}).reason, "nonfinite-both");
  EXPECT_EQ(JudgeEqual({0}).reason, "zero-both");
  EXPECT_EQ(JudgeEqual({0, -0.0F}).reason, "zero-both");  // equal bits, and zeros all the same
  EXPECT_EQ(JudgeEqual({-0.0F, 0, 1}).verdict, Verdict::kSame);
  EXPECT_EQ(JudgeEqual({3}).verdict, Verdict::kSame);
}

// A float16 array as two float32 ones: rounded, and as it was.
struct Rounded {
  std::vector<float> target, golden;

  explicit Rounded(size_t count) {
    const NarrowFormat half = *NarrowFormatOf(DType::kFloat16);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < count; ++i) {
      golden.push_back(normal(random));
      target.push_back(NarrowToFloat(half, FloatToNarrow(half, golden.back())));
    }
  }
  [[nodiscard]] ArrayVerdict Judge() const {
    const auto sums = kernels::PairwiseOf(
        {DType::kFloat32, target.data(), DType::kFloat32, golden.data(), target.size()});
    return JudgeArrays(sums, DType::kFloat16, DType::kFloat32);
  }
};

// The norm of the difference grows with the root of their number, the element does not.
TEST(ArrayVerdict, OneElementAmongManyIsSeen) {
  for (const size_t count : {size_t{64}, size_t{10000}, size_t{1000000}}) {
    Rounded pair(count);
    EXPECT_EQ(pair.Judge().verdict, Verdict::kWithinNoise) << count;
    pair.golden[7] = 1;
    pair.target[7] = 1.06F;
    const ArrayVerdict off = pair.Judge();
    EXPECT_EQ(off.verdict, Verdict::kSuspicious) << count;
    EXPECT_EQ(off.reason, count > 64 ? "outlier" : "exceeds-rounding") << count;
    pair.target[7] = 3;
    EXPECT_EQ(pair.Judge().verdict, Verdict::kBroken) << count;
  }
}

// Noise of all elements is no outlier, also where its extremes are far from its norm: in a column
// of larger numbers than all others, from inputs that were rounded.
TEST(ArrayVerdict, NoiseOfLargerColumnsIsNoOutlier) {
  constexpr size_t kColumns = 256, kRows = 256;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Rounded pair(kRows * kColumns);
  for (size_t i = 0; i < pair.golden.size(); ++i) {
    const float scale = i % kColumns == 5 ? 1000 : 1;
    pair.golden[i] *= scale;
    pair.target[i] = pair.golden[i] + scale * normal(random) * 0x1p-10F;
  }
  EXPECT_EQ(pair.Judge().verdict, Verdict::kWithinNoise);
}

TEST(ArrayVerdict, SquaresBeyondDoubleDoNotHideAnError) {
  const std::vector<double> huge{1e300, 2e300}, other{1e300, 3e300}, tiny{1e-300}, twice{2e-300};
  const auto judge = [](const std::vector<double>& a, const std::vector<double>& b) {
    return JudgeArrays(
        kernels::PairwiseOf({DType::kFloat64, a.data(), DType::kFloat64, b.data(), a.size()}),
        DType::kFloat64, DType::kFloat64);
  };
  EXPECT_EQ(judge(huge, other).verdict, Verdict::kBroken);
  EXPECT_NEAR(judge(huge, other).error, 1.0 / 3, 1e-9);
  EXPECT_EQ(judge(tiny, twice).verdict, Verdict::kBroken);
}

TEST(ArrayVerdict, RoundingOfTheCoarserDTypeIsExplained) {
  EXPECT_EQ(RoundingError(DType::kInt32, DType::kInt32), 0);
  EXPECT_EQ(RoundingError(DType::kFloat32, DType::kBFloat16),
            RoundingError(DType::kBFloat16, DType::kBFloat16));
  EXPECT_LE(RoundingError(DType::kFloat8E5M2, DType::kFloat32), 0.1);
  EXPECT_LT(RoundingError(DType::kFloat32, DType::kFloat32),
            LargestPlausibleError(DType::kFloat32, DType::kFloat32));
}

}  // namespace
}  // namespace plumbline::measure
