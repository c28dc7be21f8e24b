#include "pipeline/culprit/lost_gradients.h"

#include <gtest/gtest.h>

#include <optional>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

constexpr double kNoise = 1e-5;
const Item kWeight = TensorForTest({2, -1, 0.25, 3});
const Item kMade = TensorForTest({5, -2, 0.5, 7});

Item Gradient(double mean) { return TensorForTest({mean + 1, mean - 1, mean, 4}); }

// Two calls that read one weight, and what their backward returns to it on each side.
bool GiveTheSame(std::optional<double> target_first, double target_second, double golden_first,
                 double golden_second, const Item& value = kWeight) {
  ComparisonForTest calls;
  calls.Pair("Torch.make.0.forward").Out(kMade);
  calls.Pair("Torch.f.0.forward").In(value).Pair("Torch.f.1.forward").In(value);
  calls.Pair("Torch.f.1.backward").Out(Gradient(target_second), Gradient(golden_second));
  if (target_first) {
    calls.Pair("Torch.f.0.backward").Out(Gradient(*target_first), Gradient(golden_first));
  } else {
    calls.Golden("Torch.f.0.backward").GoldenOut(Gradient(golden_first));
  }
  return GiveTheSameToLeaves(calls.get(), kNoise);
}

TEST(LostGradients, GradientMayBeSharedOutOtherwise) {
  EXPECT_TRUE(GiveTheSame(0.1, 0.3, 0.1, 0.3));
  EXPECT_TRUE(GiveTheSame(0.1, 0.3, 0.35, 0.05));
  EXPECT_TRUE(GiveTheSame(std::nullopt, 0.4, 0, 0.4));
}

TEST(LostGradients, NoneMayBeLost) {
  EXPECT_FALSE(GiveTheSame(0.1, 0.3, 0.1, 0.35));
  EXPECT_FALSE(GiveTheSame(std::nullopt, 0.3, 0.1, 0.3));
}

TEST(LostGradients, OfValuesThatCallsMadeOtherRulesJudge) {
  EXPECT_TRUE(GiveTheSame(0.1, 0.3, 0.1, 0.35, kMade));
  const Item less = TensorForTest({1 + 2, 1 - 5, 1 - 0.5, 6});  // 1 - x is not recorded
  EXPECT_TRUE(GiveTheSame(0.1, 0.3, 0.1, 0.35, less));
}

// x w and its gradients for x and w, which are as large as each other. `of_weight`, `of_value`: the
// means of the target's; golden's are 0.3 and 0.5. `view`: what is read of the weight.
bool ProductLeavesAgree(double of_value, double of_weight, const Item& view = kWeight) {
  ComparisonForTest calls;
  calls.Pair("Torch.make.0.forward").Out(kMade);
  calls.Pair("Tensor.t.0.forward").In(kWeight).Out(view);
  calls.Pair("Torch.matmul.0.forward").In(kMade).In(view).Out(TensorForTest({9, -9, 1, 20}));
  calls.Pair("Torch.matmul.0.backward").Out(Gradient(of_value), Gradient(0.5));
  calls.Out(Gradient(of_weight), Gradient(0.3));
  calls.Pair("Tensor.t.0.backward").Out(Gradient(of_weight), Gradient(0.3));
  return LeavesAgree(calls.get());
}

TEST(LostGradients, OperandsOfOneSizeGetTheirOwn) {
  EXPECT_TRUE(ProductLeavesAgree(0.5, 0.3));
  EXPECT_TRUE(ProductLeavesAgree(0.6, 0.3));  // of a value on the way
  EXPECT_FALSE(ProductLeavesAgree(0.5, 0.31));
}

// A bias with as many elements as the value: gradients come in another order than operands.
TEST(LostGradients, AnOperandOfTheGradientsShapeGoesBeforeOneOfItsSize) {
  const auto agrees = [](double of_bias, double of_value) {
    const Item bias = TensorForTest({2, -1, 0.25, 3}, {16});
    const auto of_bias_shape = [](double mean) {
      return TensorForTest({mean + 1, mean - 1, mean, 4}, {16});
    };
    ComparisonForTest calls;
    calls.Pair("Torch.make.0.forward").Out(kMade);
    calls.Pair("Functional.linear.0.forward").In(kMade).In(TensorForTest({1, 0, 1, 1}, {4, 8}));
    calls.In(bias).Out(TensorForTest({9, -9, 1, 20}, {4, 8}));
    calls.Pair("Functional.linear.0.backward").Out(of_bias_shape(of_bias), of_bias_shape(0.3));
    calls.Out(Gradient(of_value), Gradient(0.5));
    return GiveTheSameToLeaves(calls.get(), kNoise);
  };
  EXPECT_TRUE(agrees(0.3, 0.6));
  EXPECT_FALSE(agrees(0.31, 0.5));
}

// A value as large as the weight, whose gradient comes transposed and behind that of the bias.
TEST(LostGradients, AValueOnTheWayTakesItsOwnGradient) {
  const auto agrees = [](double of_value, double of_weight) {
    const auto of = [](double mean, const Shape& shape) {
      return TensorForTest({mean + 1, mean - 1, mean, 4}, shape);
    };
    const Item value = TensorForTest({5, -2, 0.5, 7}, {2, 8});
    ComparisonForTest calls;
    calls.Pair("Torch.make.0.forward").Out(value);
    calls.Pair("Functional.linear.0.forward").In(value).In(TensorForTest({2, -1, 0.25, 3}, {2, 8}));
    calls.In(TensorForTest({1, 0, 0.5, 1}, {2})).Out(TensorForTest({9, -9, 1, 20}, {2, 2}));
    calls.Pair("Functional.linear.0.backward").Out(of(0.1, {2}), of(0.1, {2}));
    calls.Out(of(of_value, {2, 8}), of(0.5, {2, 8})).Out(of(of_weight, {8, 2}), of(0.3, {8, 2}));
    return GiveTheSameToLeaves(calls.get(), kNoise);
  };
  EXPECT_TRUE(agrees(0.6, 0.3));
  EXPECT_FALSE(agrees(0.5, 0.31));
}

// A product whose last node is a view returns the gradient of the folded result alone.
TEST(LostGradients, WhatPassesThroughInAnotherShapeIsOfNoOperand) {
  const auto agrees = [](const Item& target, const Item& golden) {
    ComparisonForTest calls;
    calls.Pair("Functional.linear.0.forward").In(kWeight).Out(TensorForTest({9, -9, 1, 20}));
    calls.Pair("Functional.linear.0.backward").Row(ItemRole::kInput, Gradient(0.2), Gradient(0.4));
    calls.Out(target, golden);
    return GiveTheSameToLeaves(calls.get(), kNoise);
  };
  const auto folded = [](double mean) {
    return TensorForTest({mean + 1, mean - 1, mean, 4}, {2, 8});
  };
  EXPECT_TRUE(agrees(folded(0.2), folded(0.4)));
  EXPECT_FALSE(agrees(folded(0.3), folded(0.5)));
  EXPECT_FALSE(agrees(Gradient(0.2), Gradient(0.4)));  // as it comes in, of the weight's shape
}

TEST(LostGradients, LeavesAgreeAsCloselyAsRoundingExplains) {
  EXPECT_TRUE(ProductLeavesAgree(0.5, 0.3 + 1e-7));
  EXPECT_FALSE(ProductLeavesAgree(0.5, 0.3 + 1e-5));
}

TEST(LostGradients, MeansThatVanishProveNothing) {
  ComparisonForTest calls;
  calls.Pair("Torch.f.0.forward").In(kWeight);
  calls.Pair("Torch.f.0.backward").Out(Gradient(2e-5), Gradient(2e-5));
  EXPECT_TRUE(GiveTheSameToLeaves(calls.get(), kNoise));
  EXPECT_FALSE(LeavesAgree(calls.get()));
}

TEST(LostGradients, WhereNoLeafGetsAGradientNoneAgrees) {
  ComparisonForTest calls;
  calls.Pair("Torch.make.0.forward").Out(kMade);
  calls.Pair("Torch.f.0.forward").In(kMade).Pair("Torch.f.0.backward").Out(Gradient(0.1));
  EXPECT_TRUE(GiveTheSameToLeaves(calls.get(), kNoise));
  EXPECT_FALSE(LeavesAgree(calls.get()));
}

TEST(LostGradients, WithoutBackwardNothingIsLost) {
  ComparisonForTest calls;
  calls.Pair("Torch.f.0.forward").In(kWeight).Out(kMade);
  EXPECT_TRUE(GiveTheSameToLeaves(calls.get(), kNoise));
}

TEST(LostGradients, PathThatGoldenAloneGoesIsCut) {
  for (const bool is_cut : {true, false}) {
    ComparisonForTest calls;
    calls.Pair("Torch.f.0.forward").In(kWeight).Out(kMade).Target("Torch.g.0.forward");
    calls.Golden("Torch.f.0.backward").Golden("Torch.h.0.backward");
    EXPECT_FALSE(CutsAPath(calls.get()));  // an inference
    calls.Target("Torch.g.0.backward");
    if (!is_cut) calls.Target("Torch.f.0.backward", "shape-differs");  // another form of it
    EXPECT_EQ(CutsAPath(calls.get()), is_cut);
  }
}

TEST(LostGradients, PathThatTheTargetAloneGoesIsCutInGolden) {
  ComparisonForTest calls;
  calls.Pair("Torch.f.0.forward").In(kWeight).Out(kMade).Pair("Torch.g.0.forward");
  calls.Pair("Torch.g.0.backward");
  EXPECT_FALSE(CutsAPath(calls.get(), /*of_target=*/false));
  calls.Target("Torch.f.0.backward");
  EXPECT_FALSE(CutsAPath(calls.get()));
  EXPECT_TRUE(CutsAPath(calls.get(), /*of_target=*/false));
}

}  // namespace
}  // namespace plumbline::pipeline
