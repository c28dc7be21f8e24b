// Which call is named: pairs of small dumps, each about one rule of docs/design/verdict.md.

#include "pipeline/divergence.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

#include "pipeline/dump_for_test.h"

namespace plumbline {
namespace {

class DivergenceTest : public testing::Test {
 protected:
  DivergenceTest()
      : root_((std::filesystem::path(testing::TempDir()) /
               testing::UnitTest::GetInstance()->current_test_info()->name())
                  .string()),
        target_(root_ + "/target"),
        golden_(root_ + "/golden") {}
  ~DivergenceTest() override { std::filesystem::remove_all(root_); }

  Comparison Compare() {
    Result<Comparison> result = CompareRuns(target_.Write(), golden_.Write(), {});
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : Comparison();
  }
  std::string Named() {
    const Comparison comparison = Compare();
    return comparison.first_wrong_call ? comparison.first_wrong_call->name : "";
  }

  std::string root_;
  DumpForTest target_, golden_;
};

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
