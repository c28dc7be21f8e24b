#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/memory/digest.h"
#include "formats/pytorch/torch_pt.h"
#include "verdict/comparison_for_test.h"
#include "verdict/judge_rows.h"
#include "verdict/missed_gradients.h"

namespace plumbline::gradients_test {

// What backward calls may do: pairs of small dumps, each about one rule of docs/design/verdict.md.

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

}  // namespace plumbline::gradients_test

namespace plumbline::verdict::gradients_test {

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

namespace {

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

namespace {

using Matrix = std::array<float, 4>;

constexpr Matrix kValue{2, 0.5, 0.5, 3};
constexpr Matrix kGradient{1, 2, 4, 5}, kTurned{1, 4, 2, 5};

class SymmetricGradientTest : public ::testing::Test {
 protected:
  // The tensor of one side, in a file of that name.
  Item Tensor(const std::string& side, const std::string& name, const Matrix& values) {
    const std::string files = JoinPath(JoinPath(directory_.path(), side), "dump_tensor_data");
    EXPECT_TRUE(MakeDirectories(files));
    const std::span<const std::byte> data = std::as_bytes(std::span(values));
    const int64_t sizes[] = {2, 2};
    const torch_pt::Frame frame =
        torch_pt::MakeFrame(DType::kFloat32, sizes, data.size(), Crc32(data));
    const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
    EXPECT_TRUE(WriteFileAtomically(JoinPath(files, name), frame.head + body + frame.tail, false));
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += value;
      squares += value * value;
    }
    Item item = TensorForTest({5, 0, sum / 4, std::sqrt(squares)}, {2, 2});
    item.data_name = name;
    return item;
  }

  // Whether a gradient of `value` may be `target` where golden's is kGradient.
  bool MeansTheSame(const Matrix& value, const Matrix& target) {
    ComparisonForTest calls(CompareMode::kTensor);
    calls.Pair("Torch.f.0.forward");
    calls.Out(Tensor("target", "v.pt", value), Tensor("golden", "v.pt", value));
    calls.last_row().verdict = Verdict::kSame;
    calls.Pair("Torch.f.0.backward");
    calls.Row(ItemRole::kInput, Tensor("target", "g.pt", target),
              Tensor("golden", "g.pt", kGradient));
    Comparison comparison = calls.get();
    comparison.target_path = JoinPath(directory_.path(), "target/dump.json");
    comparison.golden_path = JoinPath(directory_.path(), "golden/dump.json");
    return MeansTheSameForSymmetricValue(comparison, comparison.rows.back(), 1e-5);
  }

  plumbline::testing::TestDirectory directory_;
};

TEST_F(SymmetricGradientTest, AntisymmetricPartSaysNothing) {
  EXPECT_TRUE(MeansTheSame(kValue, kTurned));
  EXPECT_TRUE(MeansTheSame(kValue, {1, 3, 3, 5}));
}

TEST_F(SymmetricGradientTest, SymmetricPartMustAgree) {
  EXPECT_FALSE(MeansTheSame(kValue, {1, 4, 2.1F, 5}));
  EXPECT_FALSE(MeansTheSame(kValue, {2, 2, 4, 4}));  // of one mean
}

TEST_F(SymmetricGradientTest, OfOtherMatricesEveryElementCounts) {
  EXPECT_FALSE(MeansTheSame({2, 0.5, 0.6F, 3}, kTurned));
  EXPECT_FALSE(MeansTheSame({2, 0, 0, 3}, kTurned));  // an initial value, perhaps
}

TEST_F(SymmetricGradientTest, WithoutTheForwardCallNothingIsKnown) {
  ComparisonForTest calls(CompareMode::kTensor);
  calls.Pair("Torch.f.0.backward");
  calls.Row(ItemRole::kInput, TensorForTest({5, 0, 1, 6}, {2, 2}),
            TensorForTest({5, 0, 1, 7}, {2, 2}));
  EXPECT_FALSE(MeansTheSameForSymmetricValue(calls.get(), calls.get().rows.back(), 1e-5));
}

}  // namespace

}  // namespace plumbline::verdict::gradients_test
