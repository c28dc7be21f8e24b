#include "verdict/meeting_points.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file/test_directory.h"
#include "verdict/comparison_for_test.h"
#include "verdict/wrong_results.h"

namespace plumbline::meeting_points_test {

// Calls of other forms on the way to the same values: pairs of small dumps.

namespace {

std::string Values(double scale, const std::string& shape = "[8]") {
  return TensorJson(1.0 * scale, -0.5 * scale, 1.5 * scale, shape);
}

// Read through views that no recorder sees.
std::string Mask(const std::string& shape) {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "torch.bool", "shape": {}, "Max": true, )"
      R"("Min": false, "Mean": null, "Norm": null, "requires_grad": false}})",
      shape);
}

// Golden takes a softmax of eight numbers under a mask, the target of its halves.
class FormsTest : public TwoDumpsTest {
 protected:
  FormsTest() {
    for (DumpForTest* side : {&golden_, &target_}) {
      side->Add("Torch.exp.0.forward", Values(1), Values(2));
    }
    golden_.Add("Tensor.__getitem__.0.forward", Mask("[1, 8]"), Mask("[8]"));
    target_.Add("Tensor.__getitem__.0.forward", Mask("[1, 4]"), Mask("[4]"));
    golden_.Add("Torch.softmax.0.forward", Values(2), Values(3));
    target_.Add("Tensor.chunk.0.forward", Values(2), Values(4, "[4]") + "," + Values(5, "[4]"))
        .Add("Torch.softmax.0.forward", Values(4, "[4]"), Values(6, "[4]"))
        .Add("Torch.softmax.1.forward", Values(5, "[4]"), Values(7, "[4]"));
  }

  // The halves become `joined`, which the next call of both sides reads.
  void Join(double joined) {
    target_.Add("Torch.cat.0.forward", Values(6, "[4]") + "," + Values(7, "[4]"), Values(joined));
    golden_.Add("Torch.tanh.0.forward", Values(3), Values(0.9));
    target_.Add("Torch.tanh.0.forward", Values(joined), Values(0.3 * joined));
  }
};

TEST_F(FormsTest, PartsThatComeToTheSameValuesAreNoAlarm) {
  Join(3);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  EXPECT_TRUE(comparison.is_complete());
  EXPECT_TRUE(SummaryText(comparison).starts_with("same results by another way: "));
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  EXPECT_FALSE(FailsOn(comparison, {"wrong", "unjudged"}).value());
}

TEST_F(FormsTest, PartsThatComeToOtherValuesAreNamed) {
  Join(3.3);
  EXPECT_TRUE(Compare().first_wrong_call);
}

TEST_F(FormsTest, ResultThatNothingReadsIsComparedWithNothing) {
  target_.Add("Torch.mean.0.forward", Values(6, "[4]"), Values(11, "[2]"));
  Join(3);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.__getitem__.0.forward");
}

// A step that golden computes in one call and the target in two, a little off; then what both do to
// a parameter.
class RewrittenTest : public TwoDumpsTest {
 protected:
  static constexpr double kOff = 1.0005;
  RewrittenTest() {
    for (DumpForTest* side : {&golden_, &target_}) {
      side->Add("Torch.exp.0.forward", Values(1), Values(2));
    }
    golden_.Add("Torch.gelu.0.forward", Values(2), Values(3));
    target_.Add("Torch.sin.0.forward", Values(2), Values(4))
        .Add("Torch.cos.0.forward", Values(4), Values(3 * kOff));
    golden_.Add("Torch.tanh.0.forward", Values(3), Values(5));
    target_.Add("Torch.tanh.0.forward", Values(3 * kOff), Values(5 * kOff));
    golden_.Add("Torch.tanh.0.backward", Values(8), Values(9));
    target_.Add("Torch.tanh.0.backward", Values(8), Values(9 * kOff));
    golden_.Add("Torch.exp.0.backward", Values(6), Values(7));
    target_.Add("Torch.exp.0.backward", Values(6 * 1.1), Values(7 * 1.1));
    golden_.Add("Tensor.add_.0.forward", Values(100) + "," + Values(5), Values(90));
    target_.Add("Tensor.add_.0.forward", Values(100) + "," + Values(5 * kOff), Values(90));
  }
};

TEST_F(RewrittenTest, WhatIsDampedInAStepShowsNothing) {
  EXPECT_EQ(Named(), "Torch.sin.0.forward");
}

// A value that requires a gradient, and the gradient of what both sides compute in the end.
class LeftOutTest : public FormsTest {
 protected:
  static std::string Trained(double scale) {
    std::string text = Values(scale, "[2]");
    return text.replace(text.find("false"), 5, "true");
  }
  // The state after a loop's last round, which no call reads.
  void Leave(const std::string& state) {
    target_.Add("Torch.mean.0.forward", Values(6, "[4]"), state);
    Join(3);
  }
  void Derive() {
    for (DumpForTest* side : {&golden_, &target_}) {
      side->Add("Torch.tanh.0.backward", Values(8), Values(9));
    }
  }
};

TEST_F(LeftOutTest, ResultThatNoLossDependsOnMayStayUnread) {
  Leave(Trained(11));
  Derive();
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  EXPECT_FALSE(comparison.is_complete());
}

TEST_F(LeftOutTest, WithoutGradientsNothingTellsAnOutputFromALeftOver) {
  Leave(Trained(11));
  EXPECT_TRUE(Compare().first_wrong_call);
}

TEST_F(LeftOutTest, ResultThatIsCutOffStands) {
  Leave(Values(11, "[2]"));
  Derive();
  EXPECT_TRUE(Compare().first_wrong_call);
}

TEST_F(LeftOutTest, ResultThatGoldenLeavesTooMustAgree) {
  golden_.Add("Torch.sum.0.forward", Values(3), Trained(10));
  Leave(Trained(11));
  Derive();
  EXPECT_TRUE(Compare().first_wrong_call);
}

TEST_F(LeftOutTest, ResultBehindAllThatIsDerivedStands) {
  Join(3);
  target_.Add("Torch.mean.0.forward", Values(6, "[4]"), Trained(11));
  Derive();
  EXPECT_TRUE(Compare().first_wrong_call);
}

TEST_F(FormsTest, NothingBehindThemProvesNothing) {
  const Comparison comparison = Compare();
  EXPECT_TRUE(comparison.first_wrong_call);
}

// The target alone multiplies a value, which both sides then add to something larger.
class DampedTest : public ::testing::Test {
 protected:
  std::string NamedWith(double value) {
    DumpForTest target(directory_.path() + "/t"), golden(directory_.path() + "/g");
    for (DumpForTest* side : {&golden, &target}) {
      const bool is_target = side == &target;
      side->Add("Torch.exp.0.forward", Values(1), Values(2));
      if (is_target) side->Add("Torch.mul.0.forward", Values(2), Values(value));
      side->Add("Torch.add.0.forward", Values(is_target ? value : 2) + "," + Values(5e5),
                Values(5.00002e5))
          .Add("Torch.tanh.0.forward", Values(5.00002e5), Values(0.9));
    }
    Result<Comparison> result = CompareRuns(target.Write(), golden.Write(), {});
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result && result->first_wrong_call ? result->first_wrong_call->name : "";
  }

  testing::TestDirectory directory_;
};

TEST_F(DampedTest, AValueThatIsMerelyOffIsNamedThoughItVanishes) {
  EXPECT_EQ(NamedWith(2.01), "Torch.mul.0.forward");
}

TEST_F(DampedTest, AnotherValueThatComesToTheSameIsAnotherWay) { EXPECT_EQ(NamedWith(7), ""); }

// In training a normalisation computes the same whatever running mean it reads, and keeps it.
class RunningMeanTest : public TwoDumpsTest {
 protected:
  // The target makes its running mean in a call that golden has not.
  void Record(bool is_training, double after) {
    target_.Add("Tensor.flip.0.forward", Values(9, "[4]"), Values(5, "[4]"));
    for (DumpForTest* side : {&golden_, &target_}) {
      const std::string mean = Values(side == &golden_ ? 4 : 5, "[4]");
      const std::string flag = ScalarJson("bool", is_training ? "true" : "false");
      const std::string kept = Values(0.7, "[4]");
      side->Add("Functional.batch_norm.0.forward",
                Values(2) + "," + mean + "," + kept + "," + kept + "," + kept + "," + flag + "," +
                    ScalarJson("float", "0.1"),
                Values(3));
      side->Add("Torch.tanh.0.forward", Values(3), Values(side == &golden_ ? 0.9 : after));
    }
  }
};

TEST_F(RunningMeanTest, WhatAgreesBehindItIsNoExcuse) {
  Record(true, 0.9);
  EXPECT_EQ(Named(), "Tensor.flip.0.forward");
}

TEST_F(RunningMeanTest, InUseItIsOne) {
  Record(false, 0.9);
  EXPECT_EQ(Named(), "");
}

}  // namespace

}  // namespace plumbline::meeting_points_test

namespace plumbline::verdict::meeting_points_test {

namespace {

const Item kX = TensorForTest({1, -1, 0.1, 2});
const Item kY = TensorForTest({3, -2, 0.5, 4});
const Item kZ = TensorForTest({5, -4, 0.25, 9});

// How many calls of the target and of golden are marked.
using Marked = std::pair<uint64_t, uint64_t>;
Marked Mark(const ComparisonForTest& calls) {
  const testing::TestDirectory directory;
  DumpForTest dump(directory.path() + "/run");
  const Result<plumbline::Run> run = plumbline::Run::Open(dump.Write());
  EXPECT_TRUE(run) << run.error().message();
  Comparison comparison = calls.get();
  MarkEquivalentCalls(*run, *run, comparison);
  const verdict::EquivalentCalls ways = verdict::EquivalentCallsOf(comparison);
  return {ways.target, ways.golden};
}

// One call of the target for two of golden; then a pair that reads the result of either.
ComparisonForTest FusedCall(Verdict arrival) {
  ComparisonForTest calls;
  calls.Pair("Functional.linear.0.forward").Out(kX);
  calls.Target("Functional.attention.0.forward").TargetIn(kX).TargetOut(kZ);
  calls.Pair("Functional.linear.1.forward", arrival).In(kZ);
  calls.last_row().verdict = arrival;
  calls.Out(kX);
  calls.last_row().verdict = Verdict::kSame;
  calls.Golden("Torch.matmul.0.forward").Row(ItemRole::kInput, {}, kX).GoldenOut(kY);
  calls.Golden("Functional.softmax.0.forward").Row(ItemRole::kInput, {}, kY).GoldenOut(kZ);
  return calls;
}

TEST(MarkEquivalentCalls, WhatArrivesWhereBothSidesAgreeIsJudgedThere) {
  EXPECT_EQ(Mark(FusedCall(Verdict::kSame)), Marked(1, 2));
  EXPECT_EQ(Mark(FusedCall(Verdict::kWithinNoise)), Marked(1, 2));
}

TEST(MarkEquivalentCalls, NothingIsMarkedBesideWhatIsWrong) {
  EXPECT_EQ(Mark(FusedCall(Verdict::kBroken)), Marked(0, 0));
  EXPECT_EQ(Mark(FusedCall(Verdict::kNotComparable)), Marked(0, 0));
}

TEST(MarkEquivalentCalls, AResultThatNobodyReadsIsNotJudged) {
  ComparisonForTest calls = FusedCall(Verdict::kSame);
  calls.Golden("Torch.exp.0.forward")
      .Row(ItemRole::kInput, {}, kX)
      .GoldenOut(TensorForTest({7, 1, 2, 8}));
  EXPECT_EQ(Mark(calls), Marked(1, 2));
}

TEST(MarkEquivalentCalls, LastResultsThatAgreeAreJudged) {
  ComparisonForTest calls;
  calls.Pair("Functional.linear.0.forward").Out(kX);
  calls.last_row().verdict = Verdict::kSame;
  calls.Target("Functional.f.0.forward").TargetIn(kX).TargetOut(kZ);
  calls.Golden("Functional.g.0.forward").Row(ItemRole::kInput, {}, kX).GoldenOut(kZ);
  EXPECT_EQ(Mark(calls), Marked(1, 1));
  calls.Golden("Functional.h.0.forward").Row(ItemRole::kInput, {}, kX).GoldenOut(kY);
  EXPECT_EQ(Mark(calls), Marked(1, 1));
}

// A step that is no longer than what differs where the parameter is read next shows nothing.
TEST(MarkEquivalentCalls, AnUpdateShowsWhereItIsLargerThanWhatDiffers) {
  const auto update = [](double error) {
    ComparisonForTest calls;
    calls.Pair("Functional.linear.0.forward").In(kX).Out(kY);
    calls.Pair("Functional.linear.1.forward").In(TensorForTest({1.001, -1, 0.1, 2}));
    calls.last_row().verdict = Verdict::kWithinNoise;
    calls.last_row().error = error;
    calls.Golden("Tensor.addcdiv_.0.forward")
        .Row(ItemRole::kInput, {}, kX)
        .GoldenOut(TensorForTest({1.001, -1, 0.1, 2}));
    return Mark(calls);
  };
  EXPECT_EQ(update(0), Marked(0, 1));
  EXPECT_EQ(update(1e-6), Marked(0, 1));
  EXPECT_EQ(update(1e-5), Marked(0, 0));
}

// The gradient of a value that several calls read: the backward of its maker reads the sum.
TEST(MarkEquivalentCalls, AGradientIsFollowedToTheSum) {
  const Item gradient = TensorForTest({0.1, -0.1, 0.01, 0.2}), sum = TensorForTest({1, -3, 0, 6});
  const auto sums = [&](Verdict verdict) {
    ComparisonForTest calls;
    calls.Pair("Functional.linear.0.forward").In(kY).Out(kX);
    calls.Target("Functional.f.0.forward").TargetIn(kX).TargetOut(kZ);
    calls.Pair("Functional.linear.1.forward").In(kZ);
    calls.last_row().verdict = Verdict::kSame;
    calls.Target("Functional.f.0.backward").TargetOut(gradient);
    calls.Pair("Functional.linear.0.backward").In(sum);
    calls.last_row().verdict = verdict;
    return Mark(calls);
  };
  EXPECT_EQ(sums(Verdict::kSame), Marked(2, 0));
  EXPECT_EQ(sums(Verdict::kNotComparable), Marked(1, 0));
}

TEST(MarkEquivalentCalls, WhatReturnsNothingActsUnseen) {
  ComparisonForTest calls = FusedCall(Verdict::kSame);
  calls.Target("Tensor.__setitem__.0.forward").TargetIn(kX);
  EXPECT_EQ(Mark(calls), Marked(1, 2));
}

}  // namespace

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

}  // namespace plumbline::verdict::meeting_points_test
