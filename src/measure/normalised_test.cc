#include "measure/normalised.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plumbline::measure {
namespace {

constexpr double kFloat32 = 0x1p-24;
using Values = std::vector<double>;

// Two channels of mean 100 and -40 with deviation 1 and 2, in four samples.
const Values kColumns{101, -38, 99, -42, 101, -42, 99, -38};
const Values kNormal{1, 1, -1, -1, 1, -1, -1, 1};

Normalisation OfColumns() { return {kColumns, {}, {}, 2, 1, 0, 0}; }

TEST(Normalised, ByChannel) {
  EXPECT_TRUE(IsNormalised(OfColumns(), kNormal, kFloat32));
  Values off = kNormal;
  off[3] += 1e-6;  // rounding of 42 beside a deviation of 2
  EXPECT_TRUE(IsNormalised(OfColumns(), off, kFloat32));
  off[3] += 1e-3;
  EXPECT_FALSE(IsNormalised(OfColumns(), off, kFloat32));
}

TEST(Normalised, ByBlocksWithWeightsAndBiases) {
  const Values w{2, 3}, b{10, 20}, x{101, 99, -38, -42};
  const Normalisation layer{x, w, b, 2, 1, 2, 0};
  EXPECT_TRUE(IsNormalised(layer, Values{12, 17, 12, 17}, kFloat32));
  const Normalisation instance{x, w, b, 2, 2, 2, 0};
  EXPECT_TRUE(IsNormalised(instance, Values{12, 8, 23, 17}, kFloat32));
  EXPECT_FALSE(IsNormalised(instance, Values{12, 17, 12, 17}, kFloat32));
  EXPECT_FALSE(IsNormalised({x, {}, b, 2, 2, 2, 0}, Values{12, 8, 23, 17}, kFloat32));
}

TEST(Normalised, EpsilonCounts) {
  Normalisation call = OfColumns();
  call.epsilon = 3;  // sqrt(1 + 3), sqrt(4 + 3)
  const double second = 2 / std::sqrt(7.0);
  const Values y{0.5, second, -0.5, -second, 0.5, -second, -0.5, second};
  EXPECT_TRUE(IsNormalised(call, y, kFloat32));
  EXPECT_FALSE(IsNormalised(OfColumns(), y, kFloat32));
}

TEST(Normalised, WhatDoesNotFitOrIsNoNumberIsWrong) {
  EXPECT_FALSE(IsNormalised(OfColumns(), Values{1, 1}, kFloat32));
  Normalisation call = OfColumns();
  call.channels = 3;
  EXPECT_FALSE(IsNormalised(call, kNormal, kFloat32));
  call.channels = 0;
  EXPECT_FALSE(IsNormalised(call, kNormal, kFloat32));
  Values bad = kNormal;
  bad[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(IsNormalised(OfColumns(), bad, kFloat32));
}

TEST(Normalised, GradientLosesItsMeanAndWhatLiesAlongTheResult) {
  // Of a loss that is the sum of the results, or of their squares, nothing is left.
  const Values nothing(8, 0), noise(8, 2e-7);
  EXPECT_TRUE(IsGradientOfNormalised(OfColumns(), Values(8, 1), nothing, kFloat32));
  EXPECT_TRUE(IsGradientOfNormalised(OfColumns(), kNormal, noise, kFloat32));
  const Values incoming{1, 0, 0, 0, 0, 0, 0, 0};
  // 1 - 1/4 - x mean(x g), with x = 1, -1, 1, -1 and mean(x g) = 1/4.
  const Values gradient{0.5, 0, 0, 0, -0.5, 0, 0, 0};
  EXPECT_TRUE(IsGradientOfNormalised(OfColumns(), incoming, gradient, kFloat32));
  Values scaled = gradient;
  for (double& value : scaled) value *= 1.01;
  EXPECT_FALSE(IsGradientOfNormalised(OfColumns(), incoming, scaled, kFloat32));
}

}  // namespace
}  // namespace plumbline::measure
