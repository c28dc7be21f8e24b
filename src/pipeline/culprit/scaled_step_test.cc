// Steps that are a number of times as long as another.

#include "pipeline/culprit/scaled_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::pipeline {
namespace {

constexpr size_t kCount = 256;

// Numbers of either sign without pattern, none larger than one.
std::vector<double> Numbers(double seed, size_t count = kCount) {
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = std::sin((17.3 + seed) * static_cast<double>(i) * static_cast<double>(i + 1));
  }
  return numbers;
}

std::vector<double> Times(double factor, const std::vector<double>& step,
                          const std::vector<double>& noise = {}, double size = 0) {
  std::vector<double> made(step);
  for (size_t i = 0; i < made.size(); ++i) made[i] *= factor;
  for (size_t i = 0; i < noise.size(); ++i) made[i] += size * noise[i];
  return made;
}

TEST(ScaledStep, OneFactorInAllElementsIsFound) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 1e-4);
  const auto found = FindFactor(Times(1.01, golden, Numbers(2), 1e-4), golden, rounding, 1e-6);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->factor, 1.01, 1e-4);
  EXPECT_LT(found->explained, 1e-3);
}

// Of a weight that is 10,000 times as large as its step.
TEST(ScaledStep, BeneathTheRoundingOfEachElement) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 0.006);
  EXPECT_TRUE(FindFactor(Times(1.01, golden, Numbers(2), 0.006), golden, rounding, 1e-6));
  EXPECT_FALSE(FindFactor(Times(1.001, golden, Numbers(2), 0.006), golden, rounding, 1e-6));
}

TEST(ScaledStep, NoiseOfSingleElementsIsNone) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 1e-6);
  EXPECT_FALSE(FindFactor(Times(1, golden, Numbers(2), 0.01), golden, rounding, 1e-6));
  std::vector<double> turned = golden;  // an element that is rounding, under Adam
  turned[7] = -turned[7];
  EXPECT_FALSE(FindFactor(turned, golden, rounding, 1e-6));
}

// A norm that limits all gradients is as noisy as these.
TEST(ScaledStep, AFactorNoLargerThanTheNoiseIsNone) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 1e-6);
  EXPECT_FALSE(FindFactor(Times(1.001, golden), golden, rounding, 1e-3));
  EXPECT_TRUE(FindFactor(Times(1.01, golden), golden, rounding, 1e-3));
}

TEST(ScaledStep, AFewElementsTellNothing) {
  const std::vector<double> golden = Numbers(1, 8), rounding(8, 1e-6);
  EXPECT_FALSE(FindFactor(Times(1.5, golden), golden, rounding, 1e-6));
  EXPECT_FALSE(FindFactor({}, {}, {}, 0));
  const std::vector<double> still(kCount, 0.0);
  EXPECT_FALSE(FindFactor(golden, still, still, 0));
}

}  // namespace
}  // namespace plumbline::pipeline
