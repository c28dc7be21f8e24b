#include "pipeline/culprit/needless_gradient.h"

#include <gtest/gtest.h>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

constexpr double kNoise = 1e-5;

Item Value(double number, bool requires_grad) {
  Item item = TensorForTest({number + 1, number - 2, number, 3 * number}, {4});
  item.requires_grad = requires_grad;
  return item;
}

// A folded layer and a head: only the head is trained in the target, whose gradient to the layer is
// missing.
struct Folded {
  bool folds = true;              // the layer has no counterpart
  bool trains_layer = false;      // in the target too: its gradient was cut off
  double gradient_of_head = 0.5;  // golden: 0.5

  [[nodiscard]] bool IsNeedless() const {
    ComparisonForTest calls;
    const Item weight = Value(2, trains_layer);
    if (folds) {
      calls.Target("Functional.linear.0.forward", "shape-differs").TargetIn(Value(1, false));
      calls.TargetIn(weight).TargetOut(Value(3, false));
    } else {
      calls.Pair("Functional.linear.0.forward").In(Value(1, false));
      calls.Row(ItemRole::kInput, weight, Value(2, true));
      calls.Out(Value(3, false), Value(3, true));
    }
    calls.Pair("Functional.linear.1.forward");
    calls.Row(ItemRole::kInput, Value(3, false), Value(3, true)).Out(Value(4, true));
    const auto backward = static_cast<uint32_t>(calls.get().calls.size());
    calls.Target("Functional.linear.1.backward", "structure-differs");
    calls.TargetOut(Value(gradient_of_head, false)).TargetOut(Item());
    calls.Golden("Functional.linear.1.backward", "structure-differs");
    calls.GoldenOut(Value(0.5, false)).GoldenOut(Value(7, false));
    return LacksOnlyNeedlessGradients(calls.get(), backward, kNoise);
  }
};

TEST(NeedlessGradient, NothingAsksForTheGradientOfFoldedWeights) {
  EXPECT_TRUE(Folded{}.IsNeedless());
}

TEST(NeedlessGradient, GradientThatWasCutOffIsMissing) {
  EXPECT_FALSE(Folded{.trains_layer = true}.IsNeedless());
  EXPECT_FALSE((Folded{.folds = false, .trains_layer = true}.IsNeedless()));
}

TEST(NeedlessGradient, FrozenParameterOfTheSameCallIsNoExcuse) {
  EXPECT_FALSE(Folded{.folds = false}.IsNeedless());
}

TEST(NeedlessGradient, WhatBothReturnMustAgree) {
  EXPECT_FALSE(Folded{.gradient_of_head = 0.6}.IsNeedless());
}

}  // namespace
}  // namespace plumbline::pipeline
