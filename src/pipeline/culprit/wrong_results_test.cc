#include "pipeline/culprit/wrong_results.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

constexpr double kNoise = 1e-5;

// Another tensor for every number.
Item Value(double number, Shape shape = {4}) {
  return TensorForTest({number + 1, number - 2, number - 0.3, 3 * number}, std::move(shape));
}

// Rows whose verdict follows from whether both sides hold the same.
class Calls : public ComparisonForTest {
 public:
  Calls& Both(const std::string& name) {
    Pair(name);
    return *this;
  }
  Calls& Reads(double target, double golden) { return Judged(ItemRole::kInput, target, golden); }
  Calls& Makes(double target, double golden) { return Judged(ItemRole::kOutput, target, golden); }

 private:
  Calls& Judged(ItemRole role, double target, double golden) {
    Row(role, Value(target), Value(golden));
    last_row().verdict = target == golden ? Verdict::kSame : Verdict::kBroken;
    last_row().error = target == golden ? 0 : 1;
    return *this;
  }
};

bool AllMeet(const Calls& calls, CallKind direction = CallKind::kForward) {
  return WrongResults(calls.get(), direction, kNoise).AllMeet();
}

// Target: 20 - 3 = 17, 10 + 17. Golden: 10 + 20 = 30, 30 - 3. `result`: what the target comes to.
Calls AnotherOrder(double result = 27) {
  Calls calls;
  calls.Both("Torch.f.0.forward").Makes(20, 20);
  calls.Both("Torch.f.1.forward").Makes(10, 10);
  calls.Both("Tensor.__sub__.0.forward").Reads(20, 30).Reads(3, 3).Makes(17, 27);
  calls.Both("Tensor.__add__.0.forward").Reads(10, 10).Reads(17, 20).Makes(result, 30);
  return calls;
}

TEST(WrongResults, OperandsInAnotherOrderMeet) {
  Calls calls = AnotherOrder();
  calls.Both("Torch.exp.0.forward").Reads(27, 27).Makes(50, 50);
  EXPECT_TRUE(AllMeet(calls));
  EXPECT_TRUE(AllMeet(calls, CallKind::kBackward));  // there is none
}

TEST(WrongResults, ResultThatStaysWrongDoesNotMeet) {
  Calls calls = AnotherOrder(28);
  calls.Both("Torch.exp.0.forward").Reads(28, 27).Makes(51, 50);
  EXPECT_FALSE(AllMeet(calls));
}

TEST(WrongResults, AgreementThatReadsNothingWrongProvesNothing) {
  Calls calls = AnotherOrder(28);
  calls.Both("Torch.exp.0.forward").Reads(10, 10).Makes(50, 50);
  EXPECT_FALSE(AllMeet(calls));
}

TEST(WrongResults, CallWithoutCounterpartIsFollowed) {
  for (const bool is_read : {true, false}) {
    Calls calls = AnotherOrder(28);
    calls.Target("Torch.g.0.forward").TargetIn(Value(28)).TargetOut(Value(31));
    if (is_read) calls.Both("Torch.exp.0.forward").Reads(31, 31).Makes(50, 50);
    EXPECT_EQ(AllMeet(calls), is_read);
  }
}

TEST(WrongResults, OneNumberThatAgreesProvesNothing) {
  Calls calls = AnotherOrder(28);
  calls.Pair("Tensor.sum.0.forward");
  calls.Reads(28, 27).Out(Value(1.5, {1}));
  calls.last_row().verdict = Verdict::kSame;
  EXPECT_FALSE(AllMeet(calls));
}

TEST(WrongResults, LastResultMayStandUnreadInAnotherCall) {
  Calls calls = AnotherOrder();  // golden's 27 is the result of its subtraction
  EXPECT_TRUE(AllMeet(calls));
  EXPECT_FALSE(AllMeet(AnotherOrder(27.1)));
  calls.Both("Torch.exp.0.forward").Reads(28, 27).Makes(51, 50);  // golden's is read
  EXPECT_FALSE(AllMeet(calls));
}

// A value that two calls read: its gradients have other parts, and what its maker reads is the sum.
TEST(WrongResults, GradientsAreFollowedToTheMakerOfTheirValue) {
  for (const double sum : {9.0, 8.0}) {
    Calls calls;
    calls.Both("Torch.f.0.forward").Makes(20, 20);
    calls.Both("Torch.g.0.forward").Reads(20, 20).Makes(5, 5);
    calls.Both("Torch.g.0.backward").Reads(1, 1).Makes(3, 4);
    EXPECT_FALSE(AllMeet(calls, CallKind::kBackward));
    calls.Both("Torch.f.0.backward").Reads(sum, 9);
    calls.Makes(sum, 9);
    EXPECT_EQ(AllMeet(calls, CallKind::kBackward), sum == 9);
  }
}

// x[:, 0, 1] selects twice, and the gradient that is recorded is that of the second time.
TEST(WrongResults, GradientsOfStepsWithinACallAreFollowedToTheMaker) {
  for (const double sum : {9.0, 8.0}) {
    Calls calls;
    calls.Both("Torch.f.0.forward").Makes(20, 20);
    calls.Both("Tensor.__getitem__.0.forward").Reads(20, 20);
    calls.Out(Value(5, {1}));
    calls.Both("Tensor.__getitem__.0.backward").Reads(1, 2);
    calls.Row(ItemRole::kOutput, Value(3, {2}), Value(4, {2}));
    calls.last_row().verdict = Verdict::kBroken;
    EXPECT_FALSE(AllMeet(calls, CallKind::kBackward));
    calls.Both("Torch.f.0.backward").Reads(sum, 9).Makes(sum, 9);
    EXPECT_EQ(AllMeet(calls, CallKind::kBackward), sum == 9);
  }
}

TEST(WrongResults, SumOfGradientsThatACallOfOneSideReadsIsFollowedFurther) {
  for (const double result : {7.0, 6.0}) {
    Calls calls;
    calls.Both("Torch.e.0.forward").Makes(10, 10);
    calls.Target("Torch.exp.0.forward").TargetIn(Value(10)).TargetOut(Value(20));
    calls.Both("Torch.g.0.forward").Reads(20, 10).Makes(5, 4);
    calls.Both("Torch.g.0.backward").Reads(1, 2).Makes(3, 4);
    calls.Target("Torch.exp.0.backward").TargetIn(Value(9)).TargetOut(Value(result));
    calls.Both("Torch.e.0.backward").Reads(result, 7).Makes(8, 8);
    EXPECT_EQ(AllMeet(calls, CallKind::kBackward), result == 7);
  }
}

TEST(WrongResults, ConstantsOfAShapeDoNotCarryWhatIsWrong) {
  const Item ones = TensorForTest({1, 1, 1, 2}, {4});
  for (const std::string name : {"Torch.ones_like.0.forward", "Torch.clamp.0.forward"}) {
    Calls calls = AnotherOrder();
    calls.Target(name).TargetIn(Value(17)).TargetOut(ones);
    calls.Both("Torch.exp.0.forward").Reads(27, 27).Makes(50, 50);
    EXPECT_EQ(AllMeet(calls), name == "Torch.ones_like.0.forward");
  }
}

TEST(WrongResults, WhatEachSideReadsMustHaveBeenThere) {
  const Calls calls = AnotherOrder();
  const WrongResults results(calls.get(), CallKind::kForward, kNoise);
  EXPECT_TRUE(results.AreKnownBefore(calls.get().rows[2]));  // 20 of f.0, 30 of golden's sum
  EXPECT_TRUE(results.AreKnownBefore(calls.get().rows[6]));
  Calls fresh = AnotherOrder();
  fresh.Both("Torch.exp.0.forward").Reads(99, 27);
  EXPECT_FALSE(WrongResults(fresh.get(), CallKind::kForward, kNoise)
                   .AreKnownBefore(fresh.get().rows.back()));
}

TEST(WrongResults, CallWithoutResultActsUnseen) {
  Calls calls = AnotherOrder();
  const auto is_followed = [&] {
    return WrongResults(calls.get(), CallKind::kForward, kNoise)
        .IsFollowed(calls.get().rows.back());
  };
  EXPECT_TRUE(
      WrongResults(calls.get(), CallKind::kForward, kNoise).IsFollowed(calls.get().rows[2]));
  calls.Both("Torch.write.0.forward").Reads(17, 20);
  EXPECT_FALSE(is_followed());
  calls.Makes(50, 50).Reads(17, 20);  // agrees all the same, as after a step that is small
  EXPECT_FALSE(is_followed());
  calls.Reads(17, 20);
  calls.last_row().error = 1e-7;  // of 60 beside 150
  EXPECT_TRUE(is_followed());
}

TEST(WrongResults, NumberLessAKnownTensorIsKnown) {
  Calls calls = AnotherOrder();
  calls.Both("Torch.exp.0.forward");
  const auto is_known = [&](const StatisticsForTest& statistics) {
    calls.Row(ItemRole::kInput, TensorForTest(statistics, {4}), Value(27));
    return WrongResults(calls.get(), CallKind::kForward, kNoise)
        .AreKnownBefore(calls.get().rows.back());
  };
  EXPECT_TRUE(is_known({1 - 8.0, 1 - 11.0, 1 - 9.7, 30}));   // 1 - x for the x of f.1
  EXPECT_FALSE(is_known({1 - 8.0, 1 - 11.0, 1 - 9.6, 30}));  // another mean
}

// Golden's sum begins with zeros, the target's with its first term.
TEST(WrongResults, ZerosThatGoldenAddsToNeedNoSource) {
  const Item zeros = TensorForTest({0, 0, 0, 0}, {4});
  const auto is_known = [&](const std::string& name, const Item& target, const Item& golden) {
    Calls calls = AnotherOrder();
    calls.Both(name);
    calls.Row(ItemRole::kInput, target, golden);
    return WrongResults(calls.get(), CallKind::kForward, kNoise)
        .AreKnownBefore(calls.get().rows.back());
  };
  EXPECT_TRUE(is_known("Tensor.__add__.1.forward", Value(20), zeros));
  EXPECT_FALSE(is_known("Tensor.__mul__.1.forward", Value(20), zeros));
  EXPECT_FALSE(is_known("Tensor.__add__.1.forward", zeros, Value(20)));
  EXPECT_FALSE(is_known("Tensor.__add__.1.forward", Value(99), zeros));  // nobody made it
  const Item ones = TensorForTest({1, 1, 1, 2}, {4});
  EXPECT_FALSE(is_known("Tensor.__add__.1.forward", Value(20), ones));
}

}  // namespace
}  // namespace plumbline::pipeline
