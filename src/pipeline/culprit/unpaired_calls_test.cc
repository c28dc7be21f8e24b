#include "pipeline/culprit/unpaired_calls.h"

#include <gtest/gtest.h>

#include <limits>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kSmallError = 1e-5;

const Item kX = TensorForTest({1, -1, 0.1, 2});
const Item kY = TensorForTest({3, -2, 0.5, 4});
const Item kZ = TensorForTest({5, -4, 0.7, 6});

TEST(UnpairedCalls, NothingUnpairedIsEmpty) {
  const ComparisonForTest none;
  EXPECT_TRUE(UnpairedCalls(none.get()).empty());
  ComparisonForTest paired;
  paired.Pair("Torch.exp.0.forward").In(kX).Out(kY);
  EXPECT_TRUE(UnpairedCalls(paired.get()).empty());
  EXPECT_FALSE(UnpairedCalls(paired.get()).TargetProducer(kY, 0));
}

TEST(UnpairedCalls, NearestCallBeforeTheConsumerMadeIt) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kY);
  calls.Target("Torch.exp.1.forward").TargetOut(kY);
  calls.Pair("Torch.abs.0.forward").In(kY);
  calls.Target("Torch.exp.2.forward").TargetOut(kY);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.TargetProducer(kY, 2), 1U);
  EXPECT_EQ(unpaired.TargetProducer(kY, 1), 0U);
  EXPECT_FALSE(unpaired.TargetProducer(kY, 0));
  EXPECT_FALSE(unpaired.TargetProducer(kX, 2));
}

TEST(UnpairedCalls, SidesAreKeptApart) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Golden("Torch.log.0.forward").GoldenOut(kY);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.GoldenProducer(kY), 1U);
  EXPECT_FALSE(unpaired.GoldenProducer(kX));
  EXPECT_FALSE(unpaired.TargetProducer(kY, 2));
}

TEST(UnpairedCalls, ConstantAndScalarSayNothingAboutTheirSource) {
  const Item zeros = TensorForTest({0, 0, 0, 0});
  Item scalar = kX;
  scalar.is_tensor = false;
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(zeros).TargetOut(scalar);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_FALSE(unpaired.TargetProducer(zeros, 1));
  EXPECT_FALSE(unpaired.TargetProducer(scalar, 1));
}

TEST(UnpairedCalls, NaNAndInfinityAreFollowed) {
  const Item nan = TensorForTest({kNaN, kNaN, kNaN, kNaN});
  const Item infinite = TensorForTest({kInf, 0, kInf, kInf});
  ComparisonForTest calls;
  calls.Target("Torch.log.0.forward").TargetOut(nan);
  calls.Target("Torch.exp.0.forward").TargetOut(infinite);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.TargetProducer(nan, 2), 0U);
  EXPECT_EQ(unpaired.TargetProducer(infinite, 2), 1U);
}

TEST(UnpairedCalls, GoodResultClearsWhatLedToIt) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.log.0.forward").TargetOut(kZ);
  calls.Target("Torch.mul.0.forward").TargetIn(kX).TargetOut(kY);
  UnpairedCalls unpaired(calls.get());
  unpaired.MarkGood(2);
  EXPECT_TRUE(unpaired.IsGood(0));
  EXPECT_FALSE(unpaired.IsGood(1));
  EXPECT_TRUE(unpaired.IsGood(2));
}

TEST(UnpairedCalls, NegativeIsFollowed) {
  const Item negative = TensorForTest({1, -3, -0.5, 4});
  const Item positive = TensorForTest({3, -1, 0.5, 4});
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(positive);
  calls.Golden("Torch.log.0.forward").GoldenOut(positive);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.TargetProducer(negative, 2), 0U);
  EXPECT_EQ(unpaired.GoldenProducer(negative), 1U);
  EXPECT_FALSE(unpaired.TargetProducer(TensorForTest({1, -3, 0.5, 4}), 2));
}

TEST(UnpairedCalls, WholeNumbersDoNotClearWhatTheyWereMadeFrom) {
  const Item chosen = TensorForTest({3, 0, 1.5, 4}, {4}, "torch.int64");
  const Item shifted = TensorForTest({4, 1, 2.5, 6}, {4}, "torch.int64");
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.argmax.0.forward").TargetIn(kX).TargetOut(chosen);
  calls.Target("Tensor.add.0.forward").TargetIn(chosen).TargetOut(shifted);
  UnpairedCalls unpaired(calls.get());
  unpaired.MarkGood(2);
  EXPECT_FALSE(unpaired.IsGood(0));
  EXPECT_TRUE(unpaired.IsGood(1));
  EXPECT_TRUE(unpaired.IsGood(2));
}

TEST(UnpairedCalls, CloseAgreementIsKeptApart) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.log.0.forward").TargetIn(kX).TargetOut(kY);
  UnpairedCalls unpaired(calls.get());
  unpaired.MarkGood(1);
  EXPECT_TRUE(unpaired.IsGood(0));
  EXPECT_FALSE(unpaired.right()[0]);
  unpaired.MarkGood(1, UnpairedCalls::Agreement::kClose);
  EXPECT_TRUE(unpaired.right()[0]);
}

// The results of one call of another form, and whether they agree.
bool Agree(const Item& target, const Item& golden) {
  ComparisonForTest calls;
  calls.Target("Torch.f.0.forward", "shape-differs").TargetOut(target);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(golden);
  return UnpairedCalls(calls.get()).ResultsAgree(0, kSmallError);
}

TEST(UnpairedCalls, ViewOfTheSameElementsAgrees) {
  EXPECT_TRUE(Agree(TensorForTest({3, -2, 0.5, 4}, {16}), TensorForTest({3, -2, 0.5, 4})));
  EXPECT_TRUE(Agree(TensorForTest({3, -2, 0.5, 4.00001}, {16}), TensorForTest({3, -2, 0.5, 4})));
}

TEST(UnpairedCalls, OtherValuesOrSizesDoNotAgree) {
  EXPECT_FALSE(Agree(kX, kY));
  EXPECT_FALSE(Agree(TensorForTest({3, -2, 0.5, 4}, {8}), TensorForTest({3, -2, 0.5, 4})));
}

TEST(UnpairedCalls, NaNInfinityAndMissingStatisticsNeverAgree) {
  Item bare = kY;
  bare.statistics = {};
  EXPECT_FALSE(Agree(TensorForTest({kNaN, kNaN, kNaN, kNaN}), kY));
  EXPECT_FALSE(Agree(kY, TensorForTest({kNaN, kNaN, kNaN, kNaN})));
  EXPECT_FALSE(Agree(TensorForTest({kInf, -2, kInf, kInf}), kY));
  EXPECT_FALSE(Agree(bare, kY));
  EXPECT_FALSE(Agree(bare, bare));
}

TEST(UnpairedCalls, CallWithoutResultsOrCounterpartDoesNotAgree) {
  ComparisonForTest calls;
  calls.Target("Torch.f.0.forward", "shape-differs").TargetIn(kX);
  calls.Golden("Torch.f.0.forward", "shape-differs").GoldenOut(kY);
  calls.Target("Torch.g.0.forward").TargetOut(kX);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_FALSE(unpaired.ResultsAgree(0, kSmallError));
  EXPECT_FALSE(unpaired.ResultsAgree(2, kSmallError));
}

TEST(UnpairedCalls, NullInTheTargetAloneDoesNotAgree) {
  for (const bool is_null : {true, false}) {
    ComparisonForTest calls;
    calls.Target("Torch.f.0.backward", "structure-differs").TargetOut(kX);
    if (is_null) calls.TargetOut(Item());
    calls.Golden("Torch.f.0.backward", "structure-differs").GoldenOut(kX).GoldenOut(kY);
    // A node of the framework with fewer inputs is another matter.
    EXPECT_EQ(UnpairedCalls(calls.get()).ResultsAgree(0, kSmallError), !is_null);
  }
}

TEST(UnpairedCalls, CallOfAnotherFormIsBlamedBeforeExtraCalls) {
  ComparisonForTest calls;
  calls.Target("Torch.exp.0.forward").TargetOut(kX);
  calls.Target("Torch.matmul.0.forward", "structure-differs").TargetIn(kX).TargetOut(kY);
  calls.Target("Torch.mul.0.forward").TargetIn(kY).TargetOut(kZ);
  UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.ToBlame(2), 1U);
  unpaired.MarkGood(1);
  EXPECT_EQ(unpaired.ToBlame(2), 2U);
}

TEST(UnpairedCalls, FirstThatComputesIsBlamedAndNotAView) {
  ComparisonForTest calls;
  calls.Target("Tensor.transpose.0.forward").TargetOut(kX);
  calls.Target("Torch.exp.0.forward").TargetIn(kX).TargetOut(kY);
  calls.Target("Torch.mul.0.forward").TargetIn(kY).TargetOut(kZ);
  const UnpairedCalls unpaired(calls.get());
  EXPECT_EQ(unpaired.ToBlame(2), 1U);
  EXPECT_EQ(unpaired.ToBlame(0), 0U);  // nothing there computes
}

}  // namespace
}  // namespace plumbline::pipeline
