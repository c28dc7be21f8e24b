// Calls that share a name and nothing else: pairs of small dumps.

#include "pipeline/culprit/namesakes.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

std::string Values(double scale, const std::string& extra = {}) {
  return TensorJson(1.0 * scale, -0.5 * scale, 1.5 * scale, "[4]", extra);
}

// With a checksum, which says that all elements are compared.
std::string Summed(double scale) {
  return Values(scale, fmt::format(R"(, "md5": "{:08x}")", static_cast<int>(scale * 1000)));
}

std::string Indices(int max) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4], )"
                     R"("Max": {}, "Min": 0, "Mean": 1.5, "Norm": 3.0, "requires_grad": false}})",
                     max);
}

// A step that keeps a value in `mul.0` on golden's side, and an average there on the target's; both
// then read the new value and the new average.
class NamesakesTest : public TwoDumpsTest {
 protected:
  // `average` and `value` are the target's when they are read.
  void Record(double average, double value, std::string (*values)(double) = Bare) {
    const std::string factor = "," + ScalarJson("float", "0.5");
    golden_.Add("Tensor.mul.0.forward", values(7) + factor, values(3.5))
        .Add("Torch.lerp.0.forward", values(20), values(3));
    target_.Add("Tensor.mul.0.forward", values(size_) + factor, values(size_ / 2))
        .Add("Tensor.add.0.forward", values(size_ / 2), values(average))
        .Add("Tensor.mul.1.forward", values(7) + factor, values(value));
    golden_.Add("Torch.tanh.0.forward", values(3.5) + "," + values(3), values(0.9));
    target_.Add("Torch.tanh.0.forward", values(value) + "," + values(average), values(0.9));
  }
  static std::string Bare(double scale) { return Values(scale); }

  double size_ = 11;  // of the average, as it is kept
};

TEST_F(NamesakesTest, CallsThatEachDidRightAreNotJudged) {
  Record(3, 3.5);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.calls[0].target_name, "Tensor.mul.0.forward");
  EXPECT_EQ(comparison.calls[0].unmatched_reason, pipeline::kNamesake);
  EXPECT_EQ(comparison.rows[0].reason, pipeline::kNamesake);
  EXPECT_EQ(comparison.counts.calls, 1U);
  EXPECT_EQ(comparison.counts.unmatched_target, 3U);
  EXPECT_EQ(comparison.counts.unmatched_golden, 2U);
}

TEST_F(NamesakesTest, WrongResultOfOneIsNamed) {
  Record(3.1, 3.5);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.mul.0.forward");
  EXPECT_TRUE(comparison.calls[0].paired());
  EXPECT_EQ(comparison.rows[0].reason, "input-differs");
}

// What all elements show to be right is not named for what is wrong beside it.
TEST_F(NamesakesTest, FaultBesideOneIsNamed) {
  Record(3, 3.6, Summed);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.mul.1.forward");
  EXPECT_EQ(comparison.rows[0].reason, pipeline::kNamesake);
}

// Less exact than it should be or by another factor, and as good again behind a call that hides it.
TEST_F(NamesakesTest, ValueThatIsMerelyInexactIsNamed) {
  for (const double factor : {1.000001, 1.005}) {
    testing::TestDirectory directory;
    DumpForTest target(directory.path() + "/t"), golden(directory.path() + "/g");
    golden.Add("Torch.exp.0.forward", Values(2), Values(3))
        .Add("Torch.lerp.0.forward", Values(3), Values(1));
    target.Add("Torch.exp.0.forward", Values(2 * factor), Values(3 * factor))
        .Add("Torch.add.0.forward", Values(3 * factor), Values(1));
    for (DumpForTest* side : {&golden, &target}) {
      side->Add("Torch.tanh.0.forward", Values(1), Values(0.7));
    }
    const Result<Comparison> found = CompareRuns(target.Write(), golden.Write(), {});
    ASSERT_TRUE(found) << found.error().message();
    ASSERT_TRUE(found->first_wrong_call) << factor;
    EXPECT_EQ(found->first_wrong_call->name, "Torch.exp.0.forward");
  }
}

// Every call has its counterpart: nothing is numbered otherwise.
TEST_F(NamesakesTest, PairsOfAllCallsAreNone) {
  for (DumpForTest* side : {&golden_, &target_}) {
    side->Add("Torch.exp.0.forward", Values(side == &target_ ? 9 : 2), Values(3))
        .Add("Torch.tanh.0.forward", Values(3), Values(0.9));
  }
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// An average begins as zeros, which are those of any buffer.
TEST_F(NamesakesTest, ZerosThatLeadToWhatAgreesAreRight) {
  const std::string factor = "," + ScalarJson("float", "0.5");
  golden_.Add("Tensor.mul.0.forward", Values(7) + factor, Values(3.5))
      .Add("Torch.lerp.0.forward", Values(20), Values(3))
      .Add("Torch.tanh.0.forward", Values(3.5) + "," + Values(3), Values(0.9));
  target_.Add("Tensor.mul.0.forward", Values(0) + factor, Values(0))
      .Add("Tensor.add.0.forward", Values(0) + "," + Values(20), Values(3))
      .Add("Tensor.mul.1.forward", Values(7) + factor, Values(3.5))
      .Add("Torch.tanh.0.forward", Values(3.5) + "," + Values(3), Values(0.9));
  EXPECT_EQ(Named(), "");
}

TEST_F(NamesakesTest, ZerosThatLeadNowhereAreNamed) {
  for (DumpForTest* side : {&golden_, &target_}) {
    const std::string value = Values(side == &target_ ? 0 : 2);
    side->Add("Torch.exp.0.forward", Values(1), Values(3))
        .Add("Tensor.transpose.0.forward", value, value)
        .Add("Tensor.reshape.0.forward", value, value);
  }
  EXPECT_EQ(Named(), "Tensor.transpose.0.forward");
}

// What is left of something wrong where little depends on it may be small. Here much cancels, so
// that the average may differ by more than that.
TEST_F(NamesakesTest, CloseAgreementShowsThatACallIsRight) {
  size_ = 11000;
  Record(3.0003, 3.5);
  EXPECT_EQ(Named(), "");
}

TEST_F(NamesakesTest, RoughAgreementShowsNothing) {
  size_ = 11000;
  Record(3.003, 3.5);
  EXPECT_EQ(Named(), "Tensor.mul.0.forward");
}

// Beside the number of a mask all other errors vanish.
TEST_F(NamesakesTest, MaskedValuesShowNothing) {
  golden_.Add("Torch.exp.0.forward", Values(2), Values(3))
      .Add("Tensor.masked_fill.0.forward", Values(3), TensorJson(3, -3.4e38, 3.4e38));
  target_.Add("Torch.exp.0.forward", Values(4), Values(3.3))
      .Add("Torch.where.0.forward", Values(3.3), TensorJson(3.3, -3.4e38, 3.4e38));
  for (DumpForTest* side : {&golden_, &target_}) {
    const double max = side == &target_ ? 3.3 : 3;
    side->Add("Functional.softmax.0.forward", TensorJson(max, -3.4e38, 3.4e38), Values(0.7));
  }
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// Another value is read, and nothing shows what became of it.
TEST_F(NamesakesTest, ResultThatNothingReadsStands) {
  golden_.Add("Torch.exp.0.forward", Values(2), Values(3))
      .Add("Torch.tanh.0.forward", Values(1), Values(0.7));
  target_.Add("Torch.exp.0.forward", Values(4), Values(5))
      .Add("Torch.tanh.0.forward", Values(1), Values(0.7));
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// The same words for other scores: whole numbers do not vouch for what they were made from.
TEST_F(NamesakesTest, ChoiceThatAgreesSaysNothingAboutItsScores) {
  golden_.Add("Torch.exp.0.forward", Values(2), Values(3))
      .Add("Torch.topk.0.forward", Values(3), Indices(3));
  target_.Add("Torch.exp.0.forward", Values(4), Values(5))
      .Add("Torch.argmax.0.forward", Values(5), Indices(3));
  for (DumpForTest* side : {&golden_, &target_}) {
    side->Add("Functional.embedding.0.forward", Indices(3), Values(0.7));
  }
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// `b[0] + h * a[0]` for `a[0] * h + b[0]`, with h still zero: parts of a and b are taken in the
// other order, and no call of either side is without counterpart.
class ExchangedTest : public TwoDumpsTest {
 protected:
  static void Take(DumpForTest& side, int number, double whole) {
    side.Add(fmt::format("Tensor.__getitem__.{}.forward", number), Values(whole),
             Values(whole / 2));
  }
  // `b` is the target's part of b where it is added.
  void Record(double b) {
    const std::string zeros = TensorJson(0, 0, 0, "[4]");
    Take(golden_, 0, 7);
    Take(golden_, 1, 11);
    Take(target_, 0, 11);
    Take(target_, 1, 7);
    golden_.Add("Tensor.mul.0.forward", Values(3.5) + "," + zeros, zeros)
        .Add("Tensor.add.0.forward", zeros + "," + Values(5.5), Values(5.5));
    target_.Add("Tensor.mul.0.forward", zeros + "," + Values(3.5), zeros)
        .Add("Tensor.add.0.forward", Values(b) + "," + zeros, Values(b));
    golden_.Add("Torch.tanh.0.forward", Values(5.5) + "," + Values(3.5), Values(0.9));
    target_.Add("Torch.tanh.0.forward", Values(b) + "," + Values(3.5), Values(0.9));
  }
};

TEST_F(ExchangedTest, CallsThatChangePlacesAreNotJudged) {
  Record(5.5);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.calls[0].unmatched_reason, pipeline::kNamesake);
}

TEST_F(ExchangedTest, UnlessWhatComesOfThemIsWrong) {
  Record(6.5);
  EXPECT_NE(Named(), "");
}

// The target takes each for the other, and goes on as golden does.
TEST_F(ExchangedTest, WhatIsTakenForAnotherIsNamed) {
  Take(golden_, 0, 7);
  Take(golden_, 1, 11);
  Take(target_, 0, 11);
  Take(target_, 1, 7);
  for (DumpForTest* side : {&golden_, &target_}) {
    const bool is_golden = side == &golden_;
    side->Add("Torch.exp.0.forward", Values(is_golden ? 3.5 : 5.5), Values(is_golden ? 4 : 6));
  }
  EXPECT_EQ(Named(), "Tensor.__getitem__.0.forward");
}

}  // namespace
}  // namespace plumbline
