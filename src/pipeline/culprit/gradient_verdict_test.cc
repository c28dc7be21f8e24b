// What backward calls may do: pairs of small dumps, each about one rule of docs/design/verdict.md.

#include <gtest/gtest.h>

#include <string>

#include "pipeline/culprit/divergence.h"
#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

std::string Number(double value) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], )"
                     R"("Max": {0}, "Min": {0}, "Mean": {0}, "Norm": {0}, )"
                     R"("requires_grad": false}})",
                     value);
}

std::string Values(double max, double min, double mean, double norm,
                   const std::string& shape = "[4]") {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false}})",
                     shape, max, min, mean, norm);
}

class GradientVerdictTest : public TwoDumpsTest {
 protected:
  // A mean that is zero but for rounding, negated unseen, and added to something.
  void RecordNegation(double target_sum) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool is_target = side == &target_;
      const double residue = is_target ? 2.5e-9 : -1e-9;
      side->Add("Tensor.mean.0.forward", Values(2, -2, 0, 100, "[100, 100]"), Number(residue))
          .Add("Tensor.__add__.0.forward", Number(-residue) + "," + Number(0.3),
               Number(is_target ? target_sum : 0.3));
    }
  }

  // Two gradients of one value, whose sum no recorder sees; they cancel.
  void RecordSum(double sum_error, double mean_error = 0) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const double off = side == &target_ ? 1 + 1e-7 : 1;
      const double error = side == &target_ ? sum_error : 0;
      const double mean = 0.25 * off - 0.2499 + (side == &target_ ? mean_error : 0);
      side->Add("Torch.exp.0.backward", Values(1, -1, 0.1, 2), Values(1 * off, -1, 0.25 * off, 2))
          .Add("Torch.sin.0.backward", Values(1, -1, 0.1, 2), Values(1, -0.9, -0.2499, 2))
          .Add("Torch.tanh.0.backward", Values(1e-4, -1e-4, mean, 2e-4 * (1 + error)),
               Values(1e-4, -1e-4, mean, 2e-4 * (1 + error)));
    }
  }

  // An optimizer reads the sum of a bias's gradients, which are rounding before a batch norm.
  // `more` is in the target's sum only.
  void RecordAccumulated(double more) {
    const auto residue = [](double mean) { return Values(3e-9, -3e-9, mean, 4e-9); };
    for (DumpForTest* side : {&target_, &golden_}) {
      const double mean = side == &target_ ? -2e-10 : 1e-10;
      const double off = side == &target_ ? more : 0;
      for (int i = 0; i < 2; ++i) {
        side->Add(fmt::format("Functional.linear.{}.backward", i),
                  Values(0.01, -0.01, 0, 0.2, "[100, 4]"), residue(mean * (1 + i)));
      }
      side->Add("Tensor.add.0.forward",
                Values(6e-9, -6e-9, 3 * mean + off, side == &target_ ? 7e-9 : 5e-9) + "," +
                    Values(1, -1, 0.1, 2),
                Values(1, -1, 0.1, 2));
    }
  }

  // The gradient of a bias before a batch norm, which is rounding alone, from `incoming` ones; and
  // the same as what the module's parameter got, times `factor` in the target.
  void RecordParameter(double incoming, double factor = 1) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool is_target = side == &target_;
      const double norm = is_target ? 7e-9 : 4e-9, mean = is_target ? -2e-10 : 1e-10;
      side->Add("Functional.linear.0.backward",
                Values(incoming, -incoming, 0, 20 * incoming, "[100, 4]"),
                Values(3e-9, -3e-9, mean, norm));
      const double times = is_target ? factor : 1;
      side->AddEntry(fmt::format(R"("Module.fc.Linear.parameters_grad": {{"bias": [{}]}})",
                                 Values(3e-9 * times, -3e-9, mean, norm)));
    }
  }

  // The same where the target adds the bias in a call that golden has not.
  void RecordAccumulatedElsewhere(double incoming) {
    for (int i = 0; i < 2; ++i) {
      const double mean = 1e-10 * (1 + i);
      target_.Add(fmt::format("Tensor.__add__.{}.backward", i),
                  Values(incoming, -incoming, 0, 20 * incoming, "[100, 4]"),
                  Values(3e-9, -3e-9, mean, 4e-9));
    }
    for (DumpForTest* side : {&target_, &golden_}) {
      const double mean = side == &target_ ? 3e-10 : -5e-10;
      side->Add(
          "Tensor.add.0.forward",
          Values(6e-9, -6e-9, mean, side == &target_ ? 7e-9 : 5e-9) + "," + Values(1, -1, 0.1, 2),
          Values(1, -1, 0.1, 2));
    }
  }

  // Two sums of the same statistics, and their difference.
  void RecordDifference(double difference, bool has_other_call) {
    const std::string x = Values(40, -40, 30, 80);
    if (has_other_call) target_.Add("Torch.sin.0.forward", Values(1, -1, 0.1, 2), Number(0.3));
    for (DumpForTest* side : {&target_, &golden_}) {
      const double off = side == &target_ ? difference : 0;
      side->Add("Torch.exp.0.forward", Values(3, 1, 2, 4), x)
          .Add("Torch.sub.0.forward", x + "," + Values(40, -39, 30, 79.9),
               Values(0.2, -0.1, 0.1, 0.3 + off));
    }
  }

  // Dropout that is off; its gradient is that of the call before on golden's side.
  void RecordIdentity(bool is_identity) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const double gradient = side == &target_ ? 0.5 : 0.1;
      side->Add("Functional.dropout.0.forward", Values(1, -1, 0.1, 2),
                Values(is_identity ? 1 : 1.25, -1, 0.1, 2))
          .Add("Functional.dropout.0.backward", Values(0.5, -0.5, 0, 1),
               Values(gradient, -gradient, 0, 2 * gradient));
    }
  }

  // The same, where the call before has a gradient of another form on golden's side.
  void RecordIdentityOfOtherForm(bool is_identity) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const std::string gradient = Values(0.5, -0.5, 0, 1);
      side->Add("Functional.dropout.0.forward", Values(1, -1, 0.1, 2),
                Values(is_identity ? 1 : 1.25, -1, 0.1, 2))
          .Add("Functional.dropout.0.backward", gradient,
               side == &target_ ? gradient : Values(0.5, -0.5, 0, 1, "[2, 2, 3]"));
    }
  }

  // The gradient of a factor that scales a matrix.
  void RecordFactor(double target_gradient) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const std::string x = Values(3, -3, 0, 120, "[40, 40]");
      side->Add("Tensor.__mul__.0.forward", Number(7) + "," + x,
                Values(21, -21, 0, 840, "[40, 40]"))
          .Add("Tensor.__mul__.0.backward", Values(300, -300, 0, 4000, "[40, 40]"),
               Number(side == &target_ ? target_gradient : -2.3));
    }
  }

  // `1 - x` on one side, `x - 1` on the other, with factors of opposite sign.
  void RecordOtherSign(double factor, double result) {
    target_.Add("Torch.expm1.0.forward", Values(1, 0.5, 0.7, 1.5), Values(1.7, 0.6, 1, 2.4));
    golden_.Add("Tensor.__rsub__.0.forward", Values(1, 0.5, 0.7, 1.5), Values(-0.6, -1.7, -1, 2.4));
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool is_target = side == &target_;
      const std::string read = is_target ? Values(1.7, 0.6, 1, 2.4) : Values(-0.6, -1.7, -1, 2.4);
      const double end = is_target ? result : 0.85;
      side->Add("Tensor.__mul__.0.forward",
                read + "," + ScalarJson("float", is_target ? std::to_string(factor) : "-0.5"),
                Values(end, 0.3, 0.5, 1.2))
          .Add("Torch.tanh.0.forward", Values(end, 0.3, 0.5, 1.2), Values(end - 0.1, 0.2, 0.4, 1));
    }
  }

  // Derivatives of derivatives: the backward call was recorded again, after the fault.
  void RecordTwice(bool is_later) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool is_target = side == &target_;
      const double gradient = is_target ? 0.4 : 0.5;
      const std::string x = Values(1, -1, 0.1, 2);
      side->Add("Torch.tanh.0.forward", x, Values(0.7, -0.7, 0.1, 1.4))
          .Add("Torch.tanh.0.backward", Values(gradient, -gradient, 0, 1),
               Values(gradient, -0.1, 0, 1));
      if (is_later) {
        side->Add("Tensor.__mul__.0.forward",
                  x + "," + ScalarJson("float", is_target ? "0.4" : "0.5"),
                  Values(gradient, -gradient, 0, 2 * gradient));
      }
    }
  }
};

TEST_F(GradientVerdictTest, NegationIsFollowed) {
  RecordNegation(0.3);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, WrongSumBehindANegationIsNamed) {
  RecordNegation(0.2);
  EXPECT_EQ(Named(), "Tensor.__add__.0.forward");
}

TEST_F(GradientVerdictTest, UnseenSumOfGradientsKeepsTheirErrors) {
  RecordSum(2e-3);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, GradientThatIsNoSumIsNamed) {
  RecordSum(2e-3, 1e-5);
  EXPECT_EQ(Named(), "Torch.tanh.0.backward");
}

TEST_F(GradientVerdictTest, UnseenSumIsNoExcuseForMore) {
  RecordSum(0.3);
  EXPECT_EQ(Named(), "Torch.tanh.0.backward");
}

TEST_F(GradientVerdictTest, GradientOfAParameterIsThatOfItsCall) {
  RecordParameter(0.01);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, GradientOfAParameterThatNoCallReturnsIsJudged) {
  RecordParameter(0.01, 1.5);
  EXPECT_EQ(Named(), "Module.fc.Linear.parameters_grad");
}

TEST_F(GradientVerdictTest, WrongCallOfAParametersGradientIsNamed) {
  RecordParameter(1e-8);
  EXPECT_EQ(Named(), "Functional.linear.0.backward");
}

TEST_F(GradientVerdictTest, OptimizerReadsSumsOfGradients) {
  RecordAccumulated(0);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, WhatIsNoSumOfGradientsIsNamedAtTheOptimizer) {
  RecordAccumulated(1e-9);
  EXPECT_EQ(Named(), "Tensor.add.0.forward");
}

TEST_F(GradientVerdictTest, OptimizerReadsSumsThatCallsOfOneSideMade) {
  RecordAccumulatedElsewhere(0.01);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, SumsThatCallsOfOneSideMadeAreJudged) {
  RecordAccumulatedElsewhere(1e-8);  // nothing cancels
  EXPECT_EQ(Named(), "Tensor.add.0.forward");
}

TEST_F(GradientVerdictTest, EqualStatisticsMayHideRounding) {
  RecordDifference(5e-6, /*has_other_call=*/true);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, EqualStatisticsHideNoMore) {
  RecordDifference(3e-3, /*has_other_call=*/true);
  EXPECT_EQ(Named(), "Torch.sub.0.forward");
}

TEST_F(GradientVerdictTest, EqualStatisticsOfEqualRunsHideNothing) {
  RecordDifference(5e-6, /*has_other_call=*/false);
  EXPECT_EQ(Named(), "Torch.sub.0.forward");
}

TEST_F(GradientVerdictTest, NodeBeforeMayHaveAnotherForm) {
  RecordIdentityOfOtherForm(true);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, OtherFormOfACallThatComputesIsNamed) {
  RecordIdentityOfOtherForm(false);
  EXPECT_EQ(Named(), "Functional.dropout.0.backward");
}

TEST_F(GradientVerdictTest, CallsThatReturnWhatTheyReadMayHaveTheNodeBefore) {
  RecordIdentity(true);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, GradientThatIsOfNoNodeIsNamed) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const double gradient = side == &target_ ? 0.3 : 0.5;  // the incoming one is 0.5
    side->Add("Functional.dropout.0.forward", Values(1, -1, 0.1, 2), Values(1, -1, 0.1, 2))
        .Add("Functional.dropout.0.backward", Values(0.5, -0.5, 0, 1),
             Values(gradient, -gradient, 0, 2 * gradient));
  }
  EXPECT_EQ(Named(), "Functional.dropout.0.backward");
}

TEST_F(GradientVerdictTest, WhatCallsAfterThemReadIsJudged) {
  RecordIdentity(true);
  for (DumpForTest* side : {&target_, &golden_}) {
    const double gradient = side == &target_ ? 0.5 : 0.1;
    side->Add("Torch.sin.0.backward", Values(gradient, -gradient, 0, 2 * gradient),
              Values(gradient / 2, -gradient, 0, 2 * gradient));
  }
  EXPECT_EQ(Named(), "Torch.sin.0.backward");
}

TEST_F(GradientVerdictTest, GradientOfACallThatComputesIsJudged) {
  RecordIdentity(false);
  EXPECT_EQ(Named(), "Functional.dropout.0.backward");
}

TEST_F(GradientVerdictTest, GradientOfASpreadFactorMayCancel) {
  RecordFactor(-2.301);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, GradientOfASpreadFactorIsJudged) {
  RecordFactor(2.3);
  EXPECT_EQ(Named(), "Tensor.__mul__.0.backward");
}

TEST_F(GradientVerdictTest, OtherFactorForAnotherValueIsAnotherWay) {
  RecordOtherSign(0.5, 0.85);
  EXPECT_EQ(Named(), "");
}

TEST_F(GradientVerdictTest, OtherFactorThatDoesNotComeToTheSameIsNamed) {
  RecordOtherSign(0.6, 1.02);
  EXPECT_NE(Named(), "");
}

TEST_F(GradientVerdictTest, GradientRecordedAgainIsOfItsLaterTime) {
  RecordTwice(true);
  EXPECT_EQ(Named(), "Tensor.__mul__.0.forward");
}

TEST_F(GradientVerdictTest, WrongGradientWithoutAnotherFaultIsNamed) {
  RecordTwice(false);
  EXPECT_EQ(Named(), "Torch.tanh.0.backward");
}

}  // namespace
}  // namespace plumbline
