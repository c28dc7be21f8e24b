#include "pipeline/culprit/meeting_points.h"

#include <gtest/gtest.h>

#include "base/test_directory.h"
#include "pipeline/comparison_for_test.h"
#include "pipeline/dump_for_test.h"
#include "report/other_ways.h"

namespace plumbline::pipeline {
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
  MarkOtherWays(*run, *run, comparison);
  const report::OtherWays ways = report::OtherWaysOf(comparison);
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

TEST(MarkOtherWays, WhatArrivesWhereBothSidesAgreeIsJudgedThere) {
  EXPECT_EQ(Mark(FusedCall(Verdict::kSame)), Marked(1, 2));
  EXPECT_EQ(Mark(FusedCall(Verdict::kWithinNoise)), Marked(1, 2));
}

TEST(MarkOtherWays, NothingIsMarkedBesideWhatIsWrong) {
  EXPECT_EQ(Mark(FusedCall(Verdict::kBroken)), Marked(0, 0));
  EXPECT_EQ(Mark(FusedCall(Verdict::kNotComparable)), Marked(0, 0));
}

TEST(MarkOtherWays, AResultThatNobodyReadsIsNotJudged) {
  ComparisonForTest calls = FusedCall(Verdict::kSame);
  calls.Golden("Torch.exp.0.forward")
      .Row(ItemRole::kInput, {}, kX)
      .GoldenOut(TensorForTest({7, 1, 2, 8}));
  EXPECT_EQ(Mark(calls), Marked(1, 2));
}

TEST(MarkOtherWays, LastResultsThatAgreeAreJudged) {
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
TEST(MarkOtherWays, AnUpdateShowsWhereItIsLargerThanWhatDiffers) {
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
TEST(MarkOtherWays, AGradientIsFollowedToTheSum) {
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

TEST(MarkOtherWays, WhatReturnsNothingActsUnseen) {
  ComparisonForTest calls = FusedCall(Verdict::kSame);
  calls.Target("Tensor.__setitem__.0.forward").TargetIn(kX);
  EXPECT_EQ(Mark(calls), Marked(1, 2));
}

}  // namespace
}  // namespace plumbline::pipeline
