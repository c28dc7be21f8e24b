#include "watch/perturb/output_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"
#include "watch/perturb/noise.h"

namespace plumbline::perturb {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A tensor of doubles with one dimension; `stride` in elements.
struct Vector {
  std::vector<double> values;
  std::vector<int64_t> sizes, strides;
  explicit Vector(std::vector<double> elements, int64_t stride = 1)
      : values(std::move(elements)), strides{stride} {
    const auto count = static_cast<int64_t>(values.size());
    sizes = {(count + stride - 1) / stride};
  }
  [[nodiscard]] TensorView view() const {
    return {DType::kFloat64, reinterpret_cast<const std::byte*>(values.data()), sizes, strides};
  }
};

const RatioRule kRule{.tolerance = 1e-4, .sees_non_finite = true, .is_mindspore = false};

Difference Compared(const Vector& a, const Vector& b, const RatioRule& rule = kRule) {
  return DifferenceOf(rule, CompareOutputs(rule, a.view(), b.view(), nullptr));
}

TEST(OutputDifference, IsTheLargestRatioOfAllElements) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(0.5, 2);
  for (const size_t count : {1u, 7u, 8u, 9u, 1023u, 1024u, 1025u, 5000u}) {
    std::vector<double> a(count), b(count);
    double largest = 1;
    for (size_t i = 0; i < count; ++i) {
      a[i] = unit(random);
      b[i] = i % 3 == 0 ? a[i] : unit(random);
      largest = std::max({largest, a[i] / b[i], b[i] / a[i]});
    }
    const Difference difference = Compared(Vector(a), Vector(b));
    EXPECT_NEAR(difference.ratio(), largest, 1e-14 * largest) << count;
    EXPECT_TRUE(difference.word.empty());
  }
}

TEST(OutputDifference, WordsStandForWhatNoRatioSays) {
  EXPECT_EQ(Compared(Vector({1, 2}), Vector({1, -2})).word, "symbol_flipping");
  EXPECT_EQ(Compared(Vector({1, kNan}), Vector({1, 2})).word, "nan_mismatch");
  EXPECT_EQ(Compared(Vector({1, kInf}), Vector({1, 2})).word, "inf_mismatch");
  EXPECT_EQ(Compared(Vector({1, kInf}), Vector({1, -kInf})).word, "inf_mismatch");
  EXPECT_EQ(Compared(Vector({kNan, kInf, 3}), Vector({kNan, kInf, 3})).max_rel, 0);
  // Signs of what is below the tolerance do not count.
  EXPECT_TRUE(Compared(Vector({5e-5}), Vector({-5e-5})).word.empty());
}

TEST(OutputDifference, NonFiniteElementsAreNoDifferenceWhenAskedSo) {
  RatioRule rule = kRule;
  rule.sees_non_finite = false;
  EXPECT_EQ(Compared(Vector({1, kNan}), Vector({1, 2}), rule).max_rel, 0);
  EXPECT_FALSE(IsConsistent(Compared(Vector({1, kInf}), Vector({1, 2}), rule), 1.002));
}

TEST(OutputDifference, StridesAndTheOrderOfMemoryDoNotMatter) {
  EXPECT_EQ(Compared(Vector({1, 9, 2, 9, 3}, 2), Vector({1, 2, 3})).max_rel, 0);
  EXPECT_EQ(Compared(Vector({1, 9, 2, 9, 3}, 2), Vector({1, 2, 6})).max_rel, 1);
}

TEST(OutputDifference, MindSporeHasAnotherRule) {
  RatioRule rule = kRule;
  rule.is_mindspore = true;
  EXPECT_EQ(Compared(Vector({1, 2}), Vector({1, -2}), rule).max_rel, 7);
  EXPECT_EQ(Compared(Vector({1, 4}), Vector({1, 2}), rule).max_rel, 1);
  EXPECT_EQ(Compared(Vector({1, 5e-5}), Vector({1, 2e-5}), rule).max_rel, 0);
}

TEST(OutputDifference, ThresholdsAreThoseOfTheDType) {
  EXPECT_EQ(ThresholdOf(DType::kFloat16, Perturbation::kAddNoise), 1.002);
  EXPECT_EQ(ThresholdOf(DType::kBFloat16, Perturbation::kAddNoise), 1.004);
  EXPECT_EQ(ThresholdOf(DType::kFloat32, Perturbation::kAddNoise), 1.0002);
  EXPECT_EQ(ThresholdOf(std::nullopt, Perturbation::kAddNoise), 1.0002);
  EXPECT_EQ(ThresholdOf(DType::kFloat16, Perturbation::kNoChange), 1);
}

TEST(OutputDifference, FloatsOfPythonAreClose) {
  EXPECT_TRUE(AreClose(0, 0));
  EXPECT_TRUE(AreClose(1, 1 + 1e-10));
  EXPECT_FALSE(AreClose(1, 1 + 1e-8));
  EXPECT_FALSE(AreClose(0, 1e-8));
  EXPECT_FALSE(AreClose(1, kNan));
}

TEST(CpuComparison, NeverPassesOnAnElementThatIsNotFinite) {
  const CpuVerdict verdict = CompareWithCpu(Vector({1, kNan}).view(), Vector({1, 1}).view(), true);
  EXPECT_FALSE(verdict.is_consistent);
  EXPECT_EQ(verdict.difference.word, "nan_mismatch");
  EXPECT_TRUE(CompareWithCpu(Vector({1, kNan}).view(), Vector({1, 1}).view(), false).is_consistent);
  const CpuVerdict same = CompareWithCpu(Vector({1, kInf}).view(), Vector({1, kInf}).view(), true);
  EXPECT_TRUE(same.is_consistent);
}

}  // namespace
}  // namespace plumbline::perturb
