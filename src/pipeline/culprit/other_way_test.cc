// Calls of other forms on the way to the same values: pairs of small dumps.

#include "pipeline/culprit/other_way.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
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
}  // namespace plumbline
