#include "measure/statistic_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "measure/elementwise.h"

namespace plumbline::measure {
namespace {

using Values = std::vector<double>;

constexpr double kFloat32 = 0x1p-24;

Item ItemOf(const Values& values) {
  Item item;
  item.is_tensor = true;
  item.shape = Shape{static_cast<int64_t>(values.size())};
  double max = values[0], min = values[0], sum = 0, squares = 0;
  for (const double value : values) {
    max = std::max(max, value);
    min = std::min(min, value);
    sum += value;
    squares += value * value;
  }
  const double numbers[] = {max, min, sum / static_cast<double>(values.size()), std::sqrt(squares)};
  for (size_t i = 0; i < item.statistics.size(); ++i) item.statistics[i] = numbers[i];
  return item;
}

// How far outside of what `api` can make of these the result is; -1 where nothing is known.
double Outside(std::string_view api, const std::vector<Values>& tensors,
               const std::vector<double>& numbers, const Values& result) {
  std::vector<RangeOperand> operands;
  for (const Values& values : tensors) operands.push_back({*RangeOf(ItemOf(values)), false});
  for (const double number : numbers) operands.push_back({RangeOfNumber(number), true});
  const std::string name = "Tensor." + std::string(api) + ".0.forward";
  const RangeFunction function = RangeFunctionOf(name, operands.size());
  if (function == nullptr) return -1;
  const auto range = function(operands);
  return range ? RoundingsOutside(*range, ItemOf(result), kFloat32).value_or(-1) : -1;
}

const Values kA{3, -2, 0.5, 1}, kB{0.25, 0.5, 2, 1};

template <class Function>
Values Each(const Function& function) {
  Values result;
  for (size_t i = 0; i < kA.size(); ++i) result.push_back(function(kA[i], kB[i]));
  return result;
}

TEST(StatisticRange, WhatACallMakesIsWithin) {
  EXPECT_LT(Outside("add_", {kA, kB}, {}, Each([](double a, double b) { return a + b; })), 1);
  EXPECT_LT(Outside("add_", {kA, kB}, {-0.1}, Each([](double a, double b) { return a - 0.1 * b; })),
            1);
  EXPECT_LT(Outside("sub", {kA, kB}, {}, Each([](double a, double b) { return a - b; })), 1);
  EXPECT_LT(Outside("rsub", {kA, kB}, {}, Each([](double a, double b) { return b - a; })), 1);
  EXPECT_LT(Outside("mul", {kA, kB}, {}, Each([](double a, double b) { return a * b; })), 1);
  EXPECT_LT(Outside("mul_", {kA}, {-3}, Each([](double a, double) { return -3 * a; })), 1);
  EXPECT_LT(Outside("div", {kA, kB}, {}, Each([](double a, double b) { return a / b; })), 1);
  EXPECT_LT(Outside("div", {kA}, {7}, Each([](double a, double) { return a / 7; })), 1);
  EXPECT_LT(Outside("neg", {kA}, {}, Each([](double a, double) { return -a; })), 1);
  EXPECT_LT(Outside("sqrt", {kB}, {}, Each([](double, double b) { return std::sqrt(b); })), 1);
  EXPECT_LT(Outside("square", {kA}, {}, Each([](double a, double) { return a * a; })), 1);
  EXPECT_LT(
      Outside("lerp_", {kA, kB}, {0.1}, Each([](double a, double b) { return a + 0.1 * (b - a); })),
      1);
  EXPECT_LT(Outside("addcmul_", {kA, kB, kB}, {0.5},
                    Each([](double a, double b) { return a + 0.5 * b * b; })),
            1);
  EXPECT_LT(Outside("addcdiv_", {kA, kA, kB}, {-0.5},
                    Each([](double a, double b) { return a - 0.5 * a / b; })),
            1);
}

TEST(StatisticRange, WhatItCannotMakeIsOutside) {
  constexpr double kFar = 1000;
  EXPECT_GT(Outside("add_", {kA, kB}, {}, Each([](double a, double b) { return a + 1.001 * b; })),
            kFar);
  EXPECT_GT(Outside("mul_", {kA}, {-3}, Each([](double a, double) { return 3 * a; })), kFar);
  EXPECT_GT(Outside("mul_", {kA}, {-3}, Each([](double a, double) { return -3.003 * a; })), kFar);
  EXPECT_GT(Outside("copy_", {kA, kB}, {}, kA), kFar);
  EXPECT_GT(Outside("lerp_", {kA, kB}, {0.1},
                    Each([](double a, double b) { return a + 0.11 * (b - a); })),
            kFar);
  EXPECT_GT(Outside("addcdiv_", {kA, kB, kB}, {-0.001},
                    Each([](double a, double) { return 1.01 * a - 0.001; })),
            kFar);
  EXPECT_GT(Outside("sqrt", {kB}, {}, Each([](double, double b) { return 1.01 * std::sqrt(b); })),
            kFar);
}

// Which elements belong together the statistics do not show.
TEST(StatisticRange, OneStepMayGoEitherWay) {
  EXPECT_EQ(
      Outside("addcdiv_", {kA, kB, kB}, {-0.001}, Each([](double a, double) { return a + 0.001; })),
      0);
}

TEST(StatisticRange, NothingIsKnownOfDivisorsThatMayBeZeroOrMissingStatistics) {
  EXPECT_EQ(Outside("div", {kB, kA}, {}, kA), -1);
  EXPECT_EQ(Outside("sqrt", {kA}, {}, kA), -1);
  EXPECT_EQ(Outside("sign_", {kA}, {}, kA), -1);
  Item bare = ItemOf(kA);
  bare.statistics[3] = Recorded();
  EXPECT_FALSE(RangeOf(bare));
  bare.statistics[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(RangeOf(bare));
  EXPECT_FALSE(RoundingsOutside(RangeOfNumber(1), bare, kFloat32));
}

TEST(StatisticRange, NumbersBelowTheNormalOnesAreNotTold) {
  EXPECT_EQ(Outside("mul_", {{1e-45, 2e-45}}, {0.1}, {0, 0}), 0);
}

}  // namespace
}  // namespace plumbline::measure
