#include "measure/stats_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "measure/elementwise.h"
#include "measure/item_for_test.h"
#include "measure/standards.h"
#include "measure/verdict.h"

namespace plumbline::measure {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr StatisticSet kMinAndNorm = {false, true, false, true};

Item Whole(double max = 2) { return TensorForTest({4, 4}, max, -2, 1); }

Item Lacking(const StatisticSet& lacks, Item item = Whole()) {
  for (size_t i = 0; i < lacks.size(); ++i) {
    if (lacks[i]) item.statistics[i] = Recorded();
  }
  return item;
}

// Rows of two sides.
std::vector<ComparedRow> Rows(const std::vector<Item>& target, const std::vector<Item>& golden) {
  std::vector<ComparedRow> rows(target.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].target = target[i];
    rows[i].golden = golden[i];
  }
  return rows;
}

TEST(StatisticChoice, WhatOneSideNeverHasIsLeftOut) {
  const Item part = Lacking(kMinAndNorm);
  const auto of_target = Rows({part, part}, {Whole(), Whole()});
  const StatisticChoice choice = ChoiceOf(of_target);
  EXPECT_FALSE(choice.is_complete());
  EXPECT_EQ(choice.target_lacks, kMinAndNorm);
  EXPECT_EQ(choice.golden_lacks, StatisticSet());
  EXPECT_EQ(ChoiceText(choice), "the target has no min and norm: only max and mean were compared");
  const Item other = Lacking({true, false, false, false});
  const auto of_both = Rows({part, part}, {other, other});
  EXPECT_EQ(ChoiceText(ChoiceOf(of_both)),
            "the target has no min and norm, the golden has no max: only mean was compared");
}

TEST(StatisticChoice, WhatIsLostNowAndThenIsNoChoice) {
  const Item part = Lacking(kMinAndNorm);
  const auto once = Rows({part, Whole()}, {Whole(), Whole()});
  EXPECT_TRUE(ChoiceOf(once).is_complete());
  const auto alone = Rows({part}, {Whole()});
  EXPECT_TRUE(ChoiceOf(alone).is_complete());
  const auto both = Rows({part, part}, {part, part});
  EXPECT_TRUE(ChoiceOf(both).is_complete());
  // Nothing would be left.
  const Item rest = Lacking({true, false, true, false});
  const auto disjoint = Rows({part, part}, {rest, rest});
  EXPECT_TRUE(ChoiceOf(disjoint).is_complete());
}

TEST(StatisticChoice, WhatRecordersMayLeaveOutIsNoChoice) {
  Item number = Lacking({false, false, true, true});
  number.dtype = "torch.int64";
  Item whole = Whole();
  whole.dtype = "torch.int64";
  const auto numbers = Rows({number, number}, {whole, whole});
  EXPECT_TRUE(ChoiceOf(numbers).is_complete());
  // Floats beside them still count.
  const auto beside = Rows({number, Whole()}, {whole, Whole()});
  EXPECT_TRUE(ChoiceOf(beside).is_complete());
}

TEST(StatisticChoice, TheRestIsCompared) {
  PairContext context;
  const auto reason = [&](const Item& target, const Item& golden) {
    return DifferenceOf(target, golden, context, nullptr).reason;
  };
  const auto kind = [&](const Item& target, const Item& golden) {
    return DifferenceOf(target, golden, context, nullptr).kind;
  };
  const Item part = Lacking(kMinAndNorm);
  EXPECT_EQ(reason(part, Whole()), "no-data");
  context.left_out = kMinAndNorm;
  EXPECT_EQ(kind(part, Whole()), Difference::Kind::kEqual);
  EXPECT_EQ(kind(part, Whole(3)), Difference::Kind::kNumeric);
  // A value that is lost as well is no agreement.
  EXPECT_EQ(reason(Lacking({true, true, false, true}), Whole()), "no-data");
  // Golden's smallest is infinite, which the target does not tell.
  Item masked = Whole();
  masked.statistics[1] = -kInfinity;
  EXPECT_EQ(kind(part, masked), Difference::Kind::kEqual);
  masked.statistics[0] = kInfinity;
  EXPECT_EQ(reason(part, masked), "nonfinite-golden");
}

TEST(StatisticChoice, MeansAloneAreNeverGoodWhereTheyAreNotNumbers) {
  Item item = Lacking({true, true, false, true});
  item.statistics[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(DifferenceOf(item, item, {}, nullptr).doubt, "nonfinite-both");
  Item zero = Lacking({true, true, true, false});
  zero.statistics[3] = 0.0;
  EXPECT_EQ(DifferenceOf(zero, zero, {}, nullptr).reason, "zero-both");
}

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

TEST(DigestKind, IsTheWeakestOfAllRows) {
  const auto with = [](std::string_view digest) {
    Item item = Whole();
    item.digest = digest;
    item.has_recorded_digest = true;
    return item;
  };
  const Item crc = with("00c0ffee"), words = with("0x0123456789abcdef"), norm = with("1e-05");
  EXPECT_EQ(DigestKindOf(Rows({crc, Whole()}, {crc, crc})), DigestKind::kChecksum);
  EXPECT_EQ(DigestKindOf(Rows({crc, crc}, {crc, words})), DigestKind::kXor);
  EXPECT_EQ(DigestKindOf(Rows({words, norm}, {words, crc})), DigestKind::kLogged);
  EXPECT_EQ(DigestKindOf(Rows({norm, words}, {norm, words})), DigestKind::kLogged);
  EXPECT_EQ(DigestKindOf({}), DigestKind::kChecksum);
}

TEST(StatsMetrics, ErrorAgainstAllZerosIsInfinite) {
  EXPECT_EQ(StatisticError(Four{1.0, 0.0, 0.5, 1.0}, Four{0.0, 0.0, 0.0, 0.0}, 4), kInf);
}

}  // namespace

}  // namespace plumbline::measure
