#include "measure/stats_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "measure/standards.h"

namespace plumbline::measure {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

using Four = std::array<Recorded, 4>;

TEST(StatsMetrics, DifferencesAndPercent) {
  const StatisticDifferences d =
      CompareStatistics(Four{2.5, int64_t{3}, 0.5, 1.0}, Four{2.0, int64_t{4}, 0.0, 1.0});
  EXPECT_EQ(std::get<double>(d.difference[0]), 0.5);
  EXPECT_EQ(std::get<double>(d.relative_percent[0]), 25.0);
  EXPECT_EQ(std::get<double>(d.difference[1]), -1.0);
  EXPECT_EQ(std::get<double>(d.difference[2]), 0.5);
  EXPECT_EQ(std::get<Absent>(d.relative_percent[2]), Absent::kZeroNorm);
  EXPECT_EQ(std::get<double>(d.relative_percent[3]), 0.0);
}

TEST(StatsMetrics, TruthValuesNullsAndTextsAreNoNumbers) {
  const StatisticDifferences d = CompareStatistics(
      Four{true, std::monostate(), std::string("x"), 1.0}, Four{true, 1.0, std::string("x"), kNan});
  EXPECT_EQ(std::get<Absent>(d.difference[0]), Absent::kNotRecorded);
  EXPECT_EQ(std::get<Absent>(d.difference[1]), Absent::kNotRecorded);
  EXPECT_EQ(std::get<Absent>(d.difference[2]), Absent::kNotRecorded);
  EXPECT_TRUE(std::isnan(std::get<double>(d.difference[3])));
}

TEST(StatsMetrics, WarningRuleTakesTheLargerMagnitude) {
  const Four golden = {1.0, -1.0, 0.1, 3.0};
  EXPECT_FALSE(BreachesWarningRule(Four{1.9, -1.0, 0.1, 3.0}, golden));  // 0.9 / 1.9
  EXPECT_TRUE(BreachesWarningRule(Four{2.1, -1.0, 0.1, 3.0}, golden));   // 1.1 / 2.1
  EXPECT_TRUE(BreachesWarningRule(Four{-1.0, -1.0, 0.1, 3.0}, golden));
}

TEST(StatsMetrics, OneSidedNonFiniteBreaches) {
  EXPECT_TRUE(BreachesWarningRule(Four{kNan, 0.0, 0.0, 0.0}, Four{1.0, 0.0, 0.0, 0.0}));
  EXPECT_TRUE(BreachesWarningRule(Four{1.0, 0.0, 0.0, 0.0}, Four{kInf, 0.0, 0.0, 0.0}));
}

TEST(StatsMetrics, ErrorIsRelativeToTheTensorNotToTheStatistic) {
  // A mean near zero must not blow up: root mean square of golden is 2, the mean moves by 0.002.
  const Four golden = {4.0, -4.0, 1e-9, 20.0};
  const Four target = {4.0, -4.0, 0.002, 20.0};
  EXPECT_NEAR(StatisticError(target, golden, 100), kAverageWeight * 0.001, 1e-8);
  const Four few = {4.0, -4.0, 1e-9, 4.0};  // root mean square 2 again
  EXPECT_NEAR(StatisticError({4.0, -4.0, 0.002, 4.0}, few, 4), 0.001, 1e-9);
  EXPECT_EQ(StatisticError(golden, golden, 100), 0);
  EXPECT_EQ(StatisticError(Four{kInf, -4.0, 1e-9, 20.0}, golden, 100), kInf);
  EXPECT_EQ(StatisticError(Four{kNan, -4.0, 1e-9, 20.0}, golden, 100), kInf);
}

TEST(StatsMetrics, ErrorAgainstAllZerosIsInfinite) {
  EXPECT_EQ(StatisticError(Four{1.0, 0.0, 0.5, 1.0}, Four{0.0, 0.0, 0.0, 0.0}, 4), kInf);
}

}  // namespace
}  // namespace plumbline::measure
