#include "verdict/judge_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "verdict/cause_candidates.h"
#include "verdict/comparison_for_test.h"
#include "verdict/unpaired_calls.h"

namespace plumbline::judge_rows_test {

// Which call is named: pairs of small dumps, each about one rule of docs/design/verdict.md.

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
class UnpairedResultsTest : public DivergenceTest {
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

TEST_F(UnpairedResultsTest, SidesThatMeetAgainAgree) {
  Record(0.5, true);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
}

TEST_F(UnpairedResultsTest, SidesThatDoNotMeetDisagree) {
  Record(0.6, true);
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

TEST_F(UnpairedResultsTest, WrongResultThatNoCallReadsStands) {
  Record(0.5, false);
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// What agrees later does not depend on the exponents: a call of the target alone took them.
TEST_F(UnpairedResultsTest, WrongResultThatEndsInACallOfOneSideStands) {
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
TEST_F(UnpairedResultsTest, WrongResultOfGoodInputsStands) {
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

namespace {

const std::string kLeft = TensorJson(3, -2, 5), kRight = TensorJson(1, 0.25, 1.5);
const std::string kProduct = TensorJson(2.5, -1.5, 4);

class ExchangedOperandsTest : public TwoDumpsTest {
 protected:
  void Record(const std::string& call, const std::string& result = kProduct) {
    target_.Add(call, kRight + "," + kLeft, result);
    golden_.Add(call, kLeft + "," + kRight, kProduct);
  }
  static std::string Backward(const std::string& first, const std::string& second) {
    return R"("Tensor.__mul__.0.backward": {"input": [)" + kProduct + R"(], "output": [)" + first +
           "," + second + "]}";
  }
};

TEST_F(ExchangedOperandsTest, WhatReturnsTheSameIsNoFault) {
  Record("Torch.some_call.0.forward");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  for (const size_t row : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(comparison.rows[row].reason, "operands-exchanged");
    EXPECT_EQ(comparison.rows[row].verdict, Verdict::kWithinNoise);
    EXPECT_EQ(comparison.rows[row].error, 0);
  }
  EXPECT_EQ(comparison.calls[0].verdict, Verdict::kSame);
}

TEST_F(ExchangedOperandsTest, RoundingOnBothIsNoFault) {
  target_.Add("Tensor.__mul__.0.forward",
              TensorJson(1.0000001, 0.25, 1.5) + "," + TensorJson(3, -2.0000002, 5), kProduct);
  golden_.Add("Tensor.__mul__.0.forward", kLeft + "," + kRight, kProduct);
  EXPECT_EQ(Named(), "");
}

TEST_F(ExchangedOperandsTest, AnotherResultIsAFaultThatTheOrderExplains) {
  Record("Tensor.__truediv__.0.forward", TensorJson(9, -1.5, 11));
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.__truediv__.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "operands-exchanged");
}

TEST_F(ExchangedOperandsTest, AnOperandTakenTwiceIsAFault) {
  target_.Add("Tensor.__mul__.0.forward", kLeft + "," + kLeft, kProduct);
  golden_.Add("Tensor.__mul__.0.forward", kLeft + "," + kRight, kProduct);
  EXPECT_EQ(Named(), "Tensor.__mul__.0.forward");
}

TEST_F(ExchangedOperandsTest, StatisticsOfAMatrixProductDoNotShowItsOrder) {
  Record("Torch.matmul.0.forward");
  EXPECT_EQ(Named(), "Torch.matmul.0.forward");
}

TEST_F(ExchangedOperandsTest, StatisticsOfALargerResultDoNotShowItsOrder) {
  const std::string both = TensorJson(3, -2, 6, "[8]");
  target_.Add("Torch.cat.0.forward", kRight + "," + kLeft, both);
  golden_.Add("Torch.cat.0.forward", kLeft + "," + kRight, both);
  EXPECT_EQ(Named(), "Torch.cat.0.forward");
}

TEST_F(ExchangedOperandsTest, GradientsStandInTheOtherOrderToo) {
  Record("Tensor.__mul__.0.forward");
  target_.AddEntry(Backward(kLeft, kRight));
  golden_.AddEntry(Backward(kRight, kLeft));
  EXPECT_EQ(Named(), "");
}

TEST_F(ExchangedOperandsTest, AGradientWithoutPartnerIsAFault) {
  Record("Tensor.__mul__.0.forward");
  target_.AddEntry(Backward(kLeft, TensorJson(7, -7, 9)));
  golden_.AddEntry(Backward(kRight, kLeft));
  EXPECT_EQ(Named(), "Tensor.__mul__.0.backward");
}

TEST_F(ExchangedOperandsTest, GradientsAloneInAnotherOrderAreAFault) {
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Tensor.__mul__.0.forward", kLeft + "," + kRight, kProduct);
  }
  target_.AddEntry(Backward(kLeft, kRight));
  golden_.AddEntry(Backward(kRight, kLeft));
  EXPECT_EQ(Named(), "Tensor.__mul__.0.backward");
}

}  // namespace

// Calls that share a name and nothing else: pairs of small dumps.

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
class SameNamedCallsTest : public TwoDumpsTest {
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

TEST_F(SameNamedCallsTest, CallsThatEachDidRightAreNotJudged) {
  Record(3, 3.5);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.calls[0].target_name, "Tensor.mul.0.forward");
  EXPECT_EQ(comparison.calls[0].unmatched_reason, verdict::kSameName);
  EXPECT_EQ(comparison.rows[0].reason, verdict::kSameName);
  EXPECT_EQ(comparison.counts.calls, 1U);
  EXPECT_EQ(comparison.counts.unmatched_target, 3U);
  EXPECT_EQ(comparison.counts.unmatched_golden, 2U);
}

TEST_F(SameNamedCallsTest, WrongResultOfOneIsNamed) {
  Record(3.1, 3.5);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.mul.0.forward");
  EXPECT_TRUE(comparison.calls[0].paired());
  EXPECT_EQ(comparison.rows[0].reason, "input-differs");
}

// What all elements show to be right is not named for what is wrong beside it.
TEST_F(SameNamedCallsTest, FaultBesideOneIsNamed) {
  Record(3, 3.6, Summed);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.mul.1.forward");
  EXPECT_EQ(comparison.rows[0].reason, verdict::kSameName);
}

// Less exact than it should be or by another factor, and as good again behind a call that hides it.
TEST_F(SameNamedCallsTest, ValueThatIsMerelyInexactIsNamed) {
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
TEST_F(SameNamedCallsTest, PairsOfAllCallsAreNone) {
  for (DumpForTest* side : {&golden_, &target_}) {
    side->Add("Torch.exp.0.forward", Values(side == &target_ ? 9 : 2), Values(3))
        .Add("Torch.tanh.0.forward", Values(3), Values(0.9));
  }
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// An average begins as zeros, which are those of any buffer.
TEST_F(SameNamedCallsTest, ZerosThatLeadToWhatAgreesAreRight) {
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

TEST_F(SameNamedCallsTest, ZerosThatLeadNowhereAreNamed) {
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
TEST_F(SameNamedCallsTest, CloseAgreementShowsThatACallIsRight) {
  size_ = 11000;
  Record(3.0003, 3.5);
  EXPECT_EQ(Named(), "");
}

TEST_F(SameNamedCallsTest, RoughAgreementShowsNothing) {
  size_ = 11000;
  Record(3.003, 3.5);
  EXPECT_EQ(Named(), "Tensor.mul.0.forward");
}

// Beside the number of a mask all other errors vanish.
TEST_F(SameNamedCallsTest, MaskedValuesShowNothing) {
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
TEST_F(SameNamedCallsTest, ResultThatNothingReadsStands) {
  golden_.Add("Torch.exp.0.forward", Values(2), Values(3))
      .Add("Torch.tanh.0.forward", Values(1), Values(0.7));
  target_.Add("Torch.exp.0.forward", Values(4), Values(5))
      .Add("Torch.tanh.0.forward", Values(1), Values(0.7));
  EXPECT_EQ(Named(), "Torch.exp.0.forward");
}

// The same words for other scores: whole numbers do not vouch for what they were made from.
TEST_F(SameNamedCallsTest, ChoiceThatAgreesSaysNothingAboutItsScores) {
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
  EXPECT_EQ(comparison.calls[0].unmatched_reason, verdict::kSameName);
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

}  // namespace plumbline::judge_rows_test
