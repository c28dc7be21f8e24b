#include "pipeline/culprit/unseen_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

// Two steps, a call in each: a bias is read, added, and a softmax follows.
class UnseenUpdate : public testing::Test {
 protected:
  struct Facts {
    double moved = 0.101;  // of golden's bias, by 0.001
    double added = 1e-3;   // relative error of what the bias is added to
    double result = 1e-7;  // and of what follows
    bool is_read = true;
    bool is_view = false;  // what is read instead
    bool has_gradients = false;
    Shape shape = {8};
  };

  static Item Named(Item item, const std::string& name) {
    item.name = name;
    return item;
  }
  static Item Bias(double max, const Shape& shape) {
    Item item = TensorForTest({max, -0.1, 0.01, 0.2}, shape);
    item.requires_grad = true;
    return item;
  }
  static Item Value(double max) { return TensorForTest({max, -max, 0.01, 2 * max}, {4, 8}); }

  // `target` against `golden`, in a row that was judged.
  void Row(ItemRole role, const Item& target, const Item& golden, double error,
           const std::string& name) {
    whole_.Row(role, Named(target, name), Named(golden, name));
    whole_.last_row().error = error;
    whole_.last_row().verdict = error > 1e-5 ? Verdict::kBroken : Verdict::kWithinNoise;
  }

  std::vector<uint32_t> Find(const Facts& facts) {
    const std::string first = "Functional.linear.1000000000.forward",
                      second = "Functional.linear.0.forward", last = "Torch.softmax.0.forward";
    whole_.Pair(first);
    Row(ItemRole::kInput, Bias(0.1, facts.shape), Bias(0.1, facts.shape), 0, first + ".input.2");
    if (facts.has_gradients) whole_.Pair("Functional.linear.1000000000.backward");
    whole_.Pair(second);
    Row(ItemRole::kInput, Bias(facts.moved, facts.shape), Bias(0.102, facts.shape), 1e-2,
        second + ".input.2");
    whole_.last_row().reason = "input-differs";
    Row(ItemRole::kOutput, Value(1.1), Value(1), facts.added, second + ".output.0");
    whole_.Pair(last);
    Item read = Value(facts.is_read ? 1.1 : 1.3), golden = Value(1);
    for (Item* item : {&read, &golden}) {
      item->requires_grad = true;
      if (facts.is_view) item->shape = Shape{2, 4, 4};
    }
    Row(ItemRole::kInput, read, golden, facts.added, last + ".input.0");
    Row(ItemRole::kOutput, Value(0.5), Value(0.5), facts.result, last + ".output.0");
    Comparison comparison = whole_.get();
    comparison.earlier.push_back({"a", "b", "", "", facts.has_gradients ? 2U : 1U});
    return UpdatesWithoutEffect(comparison);
  }

  ComparisonForTest whole_;
};

TEST_F(UnseenUpdate, OfWhichNothingComesIsFound) { EXPECT_EQ(Find({}), std::vector<uint32_t>{1}); }

TEST_F(UnseenUpdate, WithAnEffectIsNone) { EXPECT_TRUE(Find({.result = 1e-3}).empty()); }

TEST_F(UnseenUpdate, WhoseResultNothingReadsIsNone) {
  EXPECT_TRUE(Find({.is_read = false}).empty());
}

TEST_F(UnseenUpdate, OfWhichAViewIsReadIsFound) {
  EXPECT_EQ(Find({.is_read = false, .is_view = true}), std::vector<uint32_t>{1});
}

TEST_F(UnseenUpdate, ThatIsLongerThanAnyStepIsNone) { EXPECT_TRUE(Find({.moved = 0.2}).empty()); }

TEST_F(UnseenUpdate, WhoseGradientIsRecordedInFourNumbersIsFound) {
  EXPECT_EQ(Find({.has_gradients = true}), std::vector<uint32_t>{1});
}

TEST_F(UnseenUpdate, OfAMatrixIsNone) { EXPECT_TRUE(Find({.shape = {4, 2}}).empty()); }

TEST_F(UnseenUpdate, IsCountedAndWarnedOf) {
  Comparison comparison;
  {
    ComparisonForTest made;
    made.Pair("Functional.linear.0.forward").In(Bias(1, {8}));
    comparison = made.get();
  }
  comparison.rows[0].target->name = "Functional.linear.0.forward.input.2";
  comparison.rows[0].reason = kUnproven;
  comparison.rows[0].error = 0.01;
  ReportUnproven(comparison);
  EXPECT_EQ(comparison.counts.missing_values, 1U);
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_TRUE(comparison.warnings[0].starts_with(
      "Functional.linear.0.forward.input.2 is not judged: it differs (relative error 0.01)"));
  EXPECT_FALSE(comparison.is_complete());
}

}  // namespace
}  // namespace plumbline::pipeline
