// Which call is named: pairs of small dumps, each about one rule of docs/design/verdict.md.

#include "pipeline/culprit/divergence.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

using DivergenceTest = TwoDumpsTest;

std::string TensorOf(double scale, const std::string& shape) {
  return TensorJson(1.0 * scale, -1.0 * scale, 1.5 * scale, shape);
}

const std::string kScores = TensorJson(3, -2, 5);
const std::string kShares = TensorJson(0.75, 0, 0.8);
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kInfinite = TensorJson(3, -kInfinity, kInfinity);
const std::string kLowest = TensorJson(3, -3.4e38, kInfinity);

std::string Json(std::string text) {  // infinities as the recorders write them
  for (size_t at = text.find("inf"); at != text.npos; at = text.find("inf", at + 8)) {
    text.replace(at, 3, "Infinity");
  }
  return text;
}

class OtherFillTest : public DivergenceTest {
 protected:
  void Fill(const std::string& shares) {
    const std::string flags =
        R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [4], "Max": true, )"
        R"("Min": false, "Mean": null, "Norm": null, "requires_grad": false})";
    target_
        .Add("Tensor.masked_fill.0.forward",
             kScores + "," + flags + "," + ScalarJson("float", "-3.4e38"), Json(kLowest))
        .Add("Functional.softmax.0.forward", Json(kLowest), shares);
    golden_
        .Add("Tensor.masked_fill.0.forward",
             kScores + "," + flags + "," + ScalarJson("float", "-Infinity"), Json(kInfinite))
        .Add("Functional.softmax.0.forward", Json(kInfinite), kShares);
  }
};

TEST_F(OtherFillTest, MasksThatComeToTheSameAreNoFault) {
  Fill(kShares);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  // Nothing is said for the filled elements themselves.
  EXPECT_EQ(comparison.rows[2].reason, "fill-differs");
  EXPECT_EQ(comparison.rows[2].verdict, Verdict::kNotComparable);
  EXPECT_EQ(comparison.rows.back().verdict, Verdict::kSame);
}

TEST_F(OtherFillTest, MasksThatMatterAreNamedWhereTheyArise) {
  Fill(TensorJson(0.6, 0.1, 0.7));
  EXPECT_EQ(Named(), "Tensor.masked_fill.0.forward");
}

// A mean over all of which is nothing but rounding becomes the first moment of an optimizer.
// `moment`: what the target's moment is. `started`: that of golden, which is zero at first.
void RecordMoment(double moment, double started, DumpForTest& target, DumpForTest& golden) {
  for (DumpForTest* side : {&target, &golden}) {
    const bool is_target = side == &target;
    const double residue = is_target ? 2.5e-9 : -1e-9;
    const auto number = [](double value) {
      return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], )"
                         R"("Max": {0}, "Min": {0}, "Mean": {0}, "Norm": {0}, )"
                         R"("requires_grad": false}})",
                         value);
    };
    const std::string whole =
        R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [100, 100], "Max": 2, )"
        R"("Min": -2, "Mean": 0, "Norm": 100, "requires_grad": false})";
    const double next = started + 0.1 * (residue - started);
    side->Add("Tensor.mean.0.forward", whole, number(residue))
        .Add("Tensor.lerp_.0.forward",
             number(started) + "," + number(residue) + "," + ScalarJson("float", "0.1"),
             number(is_target && moment != 0 ? moment : next));
  }
}

TEST_F(DivergenceTest, WhatAnOptimizerKeepsOfRoundingIsRounding) {
  RecordMoment(0, 0, target_, golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(DivergenceTest, RoundingExcusesNothingBesideAValue) {
  RecordMoment(0.0901, 0.1, target_, golden_);  // golden's is 0.09
  EXPECT_EQ(Named(), "Tensor.lerp_.0.forward");
}

// The addition of a bias that golden does inside a fused call shifts all numbers of additions.
TEST_F(DivergenceTest, GradientOfAnotherFormIsDecidedWithItsForwardCall) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const bool other = side == &target_;
    const std::string shape = other ? "[8]" : "[2, 8]";
    side->Add("Tensor.__add__.0.forward", TensorOf(1, shape), TensorOf(2, shape));
    for (int i = 0; i < 3; ++i) {
      side->Add(fmt::format("Torch.tanh.{}.forward", i), TensorOf(3 + i, "[2, 8]"),
                TensorOf(4 + i, "[2, 8]"));
    }
    side->Add("Torch.tanh.0.backward", TensorOf(9, "[2, 8]"), TensorOf(10, "[2, 8]"));
    side->Add("Tensor.__add__.0.backward", TensorOf(10, shape), TensorOf(10, shape));
  }
  EXPECT_EQ(Named(), "");
}

// What the call returns is wrong because of its own argument, not because of what it reads.
TEST_F(DivergenceTest, ArgumentIsNamedThoughLaterCallsAgree) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const bool other = side == &target_;
    const std::string normal = TensorOf(other ? 2.001 : 2, "[2, 8]");
    side->Add("Functional.layer_norm.0.forward",
              TensorOf(1, "[2, 8]") + "," + ScalarJson("float", other ? "0.01" : "1e-05"), normal)
        .Add("Torch.tanh.0.forward", normal, TensorOf(other ? 3.001 : 3, "[2, 8]"))
        .Add("Torch.tanh.1.forward", TensorOf(3, "[2, 8]"), TensorOf(4, "[2, 8]"));
  }
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Functional.layer_norm.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->what, "argument differs: input.1 is 0.01 (golden 1e-05)");
}

// Among noise of 0.5 % a factor that was read back from a tensor may differ by as much.
class ArgumentAmongNoiseTest : public DivergenceTest {
 protected:
  static std::string Narrow(double scale) {
    std::string text = TensorOf(scale, "[2, 8]");
    const std::string wide = "torch.float32";
    return text.replace(text.find(wide), wide.size(), "torch.bfloat16");
  }
  void Multiply(const std::string& factor) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool other = side == &target_;
      const double times = other ? 1.005 : 1;
      const std::string scalar = ScalarJson("float", other ? factor : "0.1");
      side->Add("Functional.linear.0.forward", Narrow(1), Narrow(2 * times))
          .Add("Torch.mul.0.forward", Narrow(2 * times) + "," + scalar, Narrow(3 * times));
    }
  }
};

TEST_F(ArgumentAmongNoiseTest, NumberReadBackMayDiffer) {
  Multiply("0.10048828125");
  EXPECT_EQ(Named(), "");
}

TEST_F(ArgumentAmongNoiseTest, NumberThatSomebodyWroteIsNamed) {
  Multiply("0.1005");
  EXPECT_EQ(Named(), "Torch.mul.0.forward");
}

// Results whose every bit is equal acquit an argument, but not one that acts where no row shows it.
class UnseenEffectTest : public DivergenceTest {
 protected:
  static std::string Digested(const std::string& digest) {
    return TensorJson(1, -1, 2, "[2, 8]", fmt::format(R"(, "md5": "{}")", digest));
  }
  void Normalize(const std::string& training, const std::string& momentum,
                 const std::string& epsilon) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool other = side == &target_;
      std::string inputs = Digested("00000001");
      for (int i = 2; i < 6; ++i) inputs += "," + Digested(fmt::format("0000000{}", i));
      inputs += "," + ScalarJson("bool", training) + "," +
                ScalarJson("float", other ? momentum : "0.1") + "," +
                ScalarJson("float", other ? epsilon : "1e-05");
      side->Add("Functional.batch_norm.0.forward", inputs, Digested("00000009"));
    }
  }
};

TEST_F(UnseenEffectTest, MomentumOfRunningStatisticsIsNamed) {
  Normalize("true", "0.01", "1e-05");
  const Comparison comparison = Compare();
  ASSERT_EQ(comparison.mode, CompareMode::kDigest);
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->what, "argument differs: input.6 is 0.01 (golden 0.1)");
  EXPECT_EQ(comparison.rows[6].verdict, Verdict::kBroken);
}

TEST_F(UnseenEffectTest, MomentumThatNothingUsesIsNone) {
  Normalize("false", "0.01", "1e-05");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.rows[6].reason, "argument-without-effect");
}

TEST_F(UnseenEffectTest, EpsilonActsOnTheResultOnly) {
  Normalize("true", "0.1", "1e-06");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.rows[7].reason, "argument-without-effect");
}

TEST_F(UnseenEffectTest, CallThatReturnsNothingProvesNothing) {
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Tensor.__setitem__.0.forward",
              Digested("00000001") + "," + ScalarJson("int", "2") + "," +
                  ScalarJson("float", side == &target_ ? "0.5" : "0.25"),
              "null");
  }
  EXPECT_TRUE(Compare().first_wrong_call);
}

// A tensor that one call wrote into before the next one reads it: no call returned what it holds.
TEST_F(DivergenceTest, WriteInPlaceThatGoldenHasNotIsTheCause) {
  const std::string written = TensorOf(2.5, "[2, 8]");
  target_.Add("Torch.exp.0.forward", TensorOf(1, "[2, 8]"), TensorOf(2, "[2, 8]"))
      .Add("Tensor.__setitem__.0.forward", written + "," + ScalarJson("int", "1"), "null")
      .Add("Torch.tanh.0.forward", written, TensorOf(0.5, "[2, 8]"));
  golden_.Add("Torch.exp.0.forward", TensorOf(1, "[2, 8]"), TensorOf(2, "[2, 8]"))
      .Add("Torch.tanh.0.forward", TensorOf(2, "[2, 8]"), TensorOf(0.25, "[2, 8]"));
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Torch.tanh.0.forward");
  const std::string& text = comparison.first_wrong_call->cause_text;
  EXPECT_NE(text.find("the target's value comes from Tensor.__setitem__.0.forward"), text.npos)
      << comparison.first_wrong_call->cause << ": " << text;
}

// Another kernel in two places, wrong in the second: that golden's calls are missing is no cause.
TEST_F(DivergenceTest, CallsLeftOutElsewhereWithoutHarmAreNoCause) {
  for (int layer = 0; layer < 2; ++layer) {
    const auto value = [layer](double at) { return TensorOf(at + 10 * layer, "[2, 8]"); };
    const std::string number = fmt::format(".{}.forward", layer);
    const std::string wrong = layer == 1 ? TensorJson(9, -2, 30, "[2, 8]") : value(5);
    target_.Add("Functional.fused" + number, value(1), wrong)
        .Add("Torch.tanh" + number, wrong, layer == 1 ? TensorOf(0.7, "[2, 8]") : value(6));
    golden_.Add("Torch.exp" + number, value(1), value(2))
        .Add("Functional.softmax" + number, value(2), value(3))
        .Add("Torch.matmul" + number, value(3), value(5))
        .Add("Torch.tanh" + number, value(5), value(6));
  }
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Functional.fused.1.forward");
  EXPECT_NE(comparison.first_wrong_call->cause, "missing-call");
  const std::string& text = comparison.first_wrong_call->cause_text;
  EXPECT_NE(text.find("in place of Torch.matmul.0.forward"), text.npos) << text;
}

// A flip keeps all four statistics: the calls behind it agree until one mixes the elements.
TEST_F(DivergenceTest, CallOfTheTargetAloneThatLeadsToTheNamedOneIsSaid) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const std::string value = TensorOf(2, "[2, 8]");
    side->Add("Torch.exp.0.forward", TensorOf(1, "[2, 8]"), value);
    if (side == &target_) side->Add("Tensor.flip.0.forward", value, value);
    side->Add("Torch.tanh.0.forward", value, TensorOf(3, "[2, 8]"))
        .Add("Tensor.cumsum.0.forward", TensorOf(3, "[2, 8]"),
             side == &target_ ? TensorJson(7, -3, 9.5, "[2, 8]") : TensorJson(6, -4, 8, "[2, 8]"));
  }
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.cumsum.0.forward");
  const std::string& what = comparison.first_wrong_call->what;
  EXPECT_NE(what.find("target only: Tensor.flip.0.forward, which leads here"), what.npos) << what;
}

// A view of the value that the call itself or a later one returns did not make it.
TEST_F(DivergenceTest, ProducerIsEarlierThanItsConsumer) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const std::string value = TensorOf(side == &target_ ? 2.5 : 2, "[2, 8]");
    side->Add("Torch.exp.0.forward", TensorOf(1, "[2, 8]"), TensorOf(2, "[2, 8]"))
        .Add("Tensor.transpose.0.forward", value, value)
        .Add("Tensor.reshape.0.forward", value, value);
  }
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.transpose.0.forward");
  const std::string& what = comparison.first_wrong_call->what;
  EXPECT_NE(what.find("golden's of Torch.exp.0.forward"), what.npos) << what;
}

// A loss without a weight that golden has: one number, taken by the next call.
TEST_F(DivergenceTest, OneNumberTellsWhichCallMadeIt) {
  const auto loss = [](double v) { return TensorJson(v, v, v, "[]"); };
  target_.Add("Functional.loss.0.forward", kScores, loss(0.70056))
      .Add("Torch.tanh.0.forward", kShares, kShares)
      .Add("Torch.exp.0.forward", loss(0.70056), loss(2.01488));
  golden_.Add("Functional.loss.0.forward", kScores + "," + TensorOf(2, "[3]"), loss(0.88334))
      .Add("Torch.tanh.0.forward", kShares, kShares)
      .Add("Torch.exp.0.forward", loss(0.88334), loss(2.41896));
  EXPECT_EQ(Named(), "Functional.loss.0.forward");
}

// Softmax with and without taking the largest away: other exponents and sums, the same shares.
class OtherWayTest : public DivergenceTest {
 protected:
  void Record(double shares, bool is_summed) {
    golden_.Add("Tensor.sub.0.forward", kScores, TensorOf(0.7, "[4]"))
        .Add("Torch.exp.0.forward", TensorOf(0.7, "[4]"), TensorOf(2, "[4]"));
    target_.Add("Torch.exp.0.forward", kScores, TensorOf(20, "[4]"));
    if (is_summed) {
      golden_.Add("Tensor.sum.0.forward", TensorOf(2, "[4]"), TensorOf(4, "[1]"));
      target_.Add("Tensor.sum.0.forward", TensorOf(20, "[4]"), TensorOf(40, "[1]"));
    }
    for (DumpForTest* side : {&golden_, &target_}) {
      const bool is_target = side == &target_;
      const double scale = is_target ? 10 : 1;
      // Without the sum nothing reads the exponents.
      const std::string inputs =
          is_summed ? TensorOf(2 * scale, "[4]") + "," + TensorOf(4 * scale, "[1]") : kShares;
      side->Add("Tensor.__truediv__.0.forward", inputs, TensorOf(is_target ? shares : 0.5, "[4]"))
          .Add("Torch.tanh.0.forward", TensorOf(is_target ? shares : 0.5, "[4]"),
               TensorOf(is_target ? shares - 0.1 : 0.4, "[4]"));
    }
  }
};

TEST_F(OtherWayTest, SidesThatMeetAgainAgree) {
  Record(0.5, true);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
}

TEST_F(OtherWayTest, SidesThatDoNotMeetDisagree) {
  Record(0.6, true);
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

TEST_F(OtherWayTest, WrongResultThatNoCallReadsStands) {
  Record(0.5, false);
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// What agrees later does not depend on the exponents: a call of the target alone took them.
TEST_F(OtherWayTest, WrongResultThatEndsInACallOfOneSideStands) {
  golden_.Add("Tensor.sub.0.forward", kScores, TensorOf(0.7, "[4]"))
      .Add("Torch.exp.0.forward", TensorOf(0.7, "[4]"), TensorOf(2, "[4]"));
  target_.Add("Torch.exp.0.forward", kScores, TensorOf(20, "[4]"))
      .Add("Torch.log.0.forward", TensorOf(20, "[4]"), TensorOf(3, "[4]"));
  for (DumpForTest* side : {&golden_, &target_}) {
    side->Add("Torch.tanh.0.forward", kShares, TensorOf(0.4, "[4]"));
  }
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// A call that returns something else for the same inputs is wrong, whatever later calls make of it.
TEST_F(OtherWayTest, WrongResultOfGoodInputsStands) {
  for (DumpForTest* side : {&golden_, &target_}) {
    side->Add("Torch.relu.0.forward", kScores, TensorOf(side == &target_ ? 2.9 : 3, "[4]"));
    side->Add("Torch.sign.0.forward", TensorOf(side == &target_ ? 2.9 : 3, "[4]"),
              TensorOf(1, "[4]"));
  }
  Record(0.5, true);
  EXPECT_EQ(Named(), "Torch.relu.0.forward");
}

// The bias before a batch norm has no gradient: what is recorded is the rounding of a sum.
TEST_F(DivergenceTest, SumsThatCancelAreNoFault) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const double rounding = side == &target_ ? 1.4e-9 : 3e-9;
    side->Add("Functional.linear.0.backward", TensorOf(0.01, "[100, 8]"),
              TensorJson(rounding, -rounding, 2 * rounding, "[8]"));
  }
  EXPECT_EQ(Named(), "");
}

// Of such a sum exactly nothing may be left on one side.
TEST_F(DivergenceTest, NothingLeftOfACancellingSumIsNoFault) {
  for (const DumpForTest* zero : {&target_, &golden_}) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const double left = side == zero ? 0 : 1.5e-9;
      side->Add(zero == &target_ ? "Torch.add.0.backward" : "Torch.add.1.backward",
                TensorOf(0.01, "[100, 8]"), TensorJson(left, left, left, "[1]"));
    }
  }
  EXPECT_EQ(Named(), "");
}

TEST_F(DivergenceTest, NothingLeftOfALargeSumIsAFault) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const double left = side == &target_ ? 0 : 1.5e-2;
    side->Add("Torch.add.0.backward", TensorOf(0.01, "[100, 8]"),
              TensorJson(left, left, left, "[1]"));
  }
  EXPECT_EQ(Named(), "Torch.add.0.backward");
}

TEST_F(DivergenceTest, SumsThatDoNotCancelAreJudged) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const double sum = side == &target_ ? 1.4e-3 : 3e-3;
    side->Add("Functional.linear.0.backward", TensorOf(0.01, "[100, 8]"),
              TensorJson(sum, -sum, 2 * sum, "[8]"));
  }
  EXPECT_EQ(Named(), "Functional.linear.0.backward");
}

// Matrix products in tf32 beside exact convolutions, and a fault among them.
class PrecisionTest : public DivergenceTest {
 protected:
  void Record(int matrices, double error) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const double factor = side == &target_ ? 1 + error : 1;
      for (int i = 0; i < matrices; ++i) {
        side->Add(fmt::format("Functional.linear.{}.forward", i),
                  TensorOf(1, "[2, 4]") + "," + TensorOf(2 + i, "[2, 4]"),
                  TensorOf((2 + i) * factor, "[2, 4]"));
      }
      for (int i = 0; i < 6; ++i) {
        side->Add(fmt::format("Functional.conv2d.{}.forward", i),
                  TensorOf(20 + i, "[2, 1, 2, 2]") + "," + TensorOf(1, "[1, 1, 2, 4]"),
                  TensorOf(40 + i, "[2, 1, 2, 2]"));
      }
    }
  }
};

TEST_F(PrecisionTest, MatrixProductsMayBeLessExactThanConvolutions) {
  Record(4, 1e-4);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
}

TEST_F(PrecisionTest, OneInexactProductAmongExactConvolutionsIsAFault) {
  Record(1, 1e-4);
  EXPECT_EQ(Named(), "Functional.linear.0.forward");
}

}  // namespace
}  // namespace plumbline
