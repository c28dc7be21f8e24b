#include "measure/statistic_choice.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "measure/item_for_test.h"
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

}  // namespace
}  // namespace plumbline::measure
