// How much the loss of each part of a batch counts: pairs of small dumps.

#include "pipeline/culprit/part_weights.h"

#include <gtest/gtest.h>

#include "pipeline/culprit/parts_for_test.h"

namespace plumbline {
namespace {

using PartWeightsTest = PartsTest;

TEST_F(PartWeightsTest, APartOfAnotherWeightIsNamed) {
  Record({kInTwo[0], {kSecond, 4, 8.1, 0.1275}}, target_);
  Record(kInOne, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  const FirstWrongCall& answer = *comparison.first_wrong_call;
  EXPECT_EQ(answer.name, "Tensor.__mul__.1.forward");
  EXPECT_EQ(answer.cause, "scale");
  EXPECT_EQ(answer.cause_text, "the loss of part 2 of 2 weighs 1.02 times as much as golden's");
  EXPECT_TRUE(FailsOn(comparison, {"broken"}).value());
}

TEST_F(PartWeightsTest, MeansThatAreNotDividedAreNamed) {
  Record({{kFirst, 4, 3.1, 1}, {kSecond, 4, 2.1, 1}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  RecordStep(2, target_);
  RecordStep(1, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.__mul__.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "scale");
  EXPECT_EQ(comparison.first_wrong_call->cause_text,
            "the losses of all parts together weigh 2 times as much as golden's");
}

// Gradients that are divided after they were added up.
TEST_F(PartWeightsTest, MeansThatAreDividedLaterAreRight) {
  Record({{kFirst, 4, 3.1, 1}, {kSecond, 4, 2.1, 1}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  RecordStep(1, target_);
  RecordStep(1, golden_);
  EXPECT_EQ(Named(), "");
}

}  // namespace
}  // namespace plumbline
