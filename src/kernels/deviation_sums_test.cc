#include "kernels/deviation_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace plumbline::kernels {
namespace {

std::vector<double> Values(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  if (count > 5) values[5] = 0;
  return values;
}

struct Both {
  DeviationSums deviations;
  SpreadSums spreads;
};

Both RunOn(CpuTarget target, const std::vector<double>& x, const std::vector<double>& y) {
  const SpreadCenter center{0.25, -0.5, -6, 0.07, -5, 0.08, 1e-7};
  Both both;
  TableFor(target).deviations(x.data(), y.data(), x.size(), &both.deviations);
  TableFor(target).spreads(center, x.data(), y.data(), x.size(), &both.spreads);
  return both;
}

TEST(DeviationSums, EveryTargetGivesTheSameBits) {
  for (const size_t count : {0U, 1U, 7U, 16U, 31U, 64U, 1000U, 1024U}) {
    std::vector<double> x = Values(count, 1), y = Values(count, 2);
    for (const bool has_nan : {false, true}) {
      if (has_nan && count > 9) {
        x[9] = std::numeric_limits<double>::quiet_NaN();
        y[3] = std::numeric_limits<double>::infinity();
      }
      const Both expected = RunOn(UsableTargets().back(), x, y);
      for (const CpuTarget target : UsableTargets()) {
        const Both both = RunOn(target, x, y);
        EXPECT_EQ(std::isnan(both.deviations.x[9]), std::isnan(expected.deviations.x[9]));
        if (has_nan) continue;  // bits of a NaN are the processor's
        EXPECT_EQ(std::memcmp(&both.deviations, &expected.deviations, sizeof(DeviationSums)), 0);
        EXPECT_EQ(std::memcmp(&both.spreads, &expected.spreads, sizeof(SpreadSums)), 0);
      }
    }
  }
}

TEST(DeviationSums, EqualAPlainLoop) {
  const std::vector<double> x = Values(1000, 3), y = Values(1000, 4);
  double relative = 0, largest = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double ratio = std::fabs(y[i]) <= kSmallestDivisor ? 0 : std::fabs(x[i] / y[i] - 1);
    relative += ratio;
    largest = std::max(largest, ratio);
    squares += (x[i] - y[i]) * (x[i] - y[i]);
  }
  DeviationSums sums;
  AddDeviations(x.data(), y.data(), x.size(), &sums);
  EXPECT_NEAR(SumOfLanes(sums.relative), relative, relative * 1e-13);
  EXPECT_NEAR(SumOfLanes(sums.squares), squares, squares * 1e-13);
  EXPECT_EQ(*std::max_element(sums.max_relative, sums.max_relative + kLanes), largest);
  EXPECT_EQ(*std::min_element(sums.min_x, sums.min_x + kLanes),
            *std::min_element(x.begin(), x.end()));
}

// One pair at a time: the divergence is then p ln(p / q).
TEST(DeviationSums, LogarithmsAreRightOverTheWholeRange) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponents(-60, 60);
  std::vector<double> ratios = {1, 0.5, 2, std::sqrt(0.5), std::sqrt(2.0), 1 + 1e-15, 1 - 1e-15};
  for (int i = 0; i < 20000; ++i) ratios.push_back(std::exp2(exponents(random)));
  SpreadCenter center;
  center.floor = 1e-300;
  for (const double ratio : ratios) {
    const double one = 1;
    SpreadSums sums;
    AddSpreads(center, &ratio, &one, 1, &sums);
    const double expected = ratio * std::log(ratio);
    ASSERT_NEAR(sums.divergence[0], expected, std::fabs(expected) * 1e-15) << ratio;
  }
}

}  // namespace
}  // namespace plumbline::kernels
