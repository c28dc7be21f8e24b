// A parameter that one side does not update: pairs of small dumps.

#include "pipeline/culprit/skipped_update.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

struct Tensor {
  double max, min, mean, norm;
};

std::string Values(const Tensor& of, bool is_parameter = false) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [8], )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": {}}})",
                     of.max, of.min, of.mean, of.norm, is_parameter ? "true" : "false");
}

constexpr Tensor kWeight{0.5, -0.5, 0.1, 0.9}, kBias{0.25, -0.125, 0.03, 0.4},
    kGradient{0.3, -0.2, 0.05, 0.6}, kOther{0.2, -0.3, 0.02, 0.5}, kZeros{0, 0, 0, 0};

Tensor Minus(const Tensor& one, const Tensor& other) {
  return {one.max - other.max / 10, one.min - other.min / 10, one.mean - other.mean / 10,
          one.norm + other.norm / 10};
}

class SkippedUpdateTest : public TwoDumpsTest {
 protected:
  SkippedUpdateTest() {
    for (DumpForTest* side : {&target_, &golden_}) Read(kBias, *side);
  }

  // What a layer makes of the parameters.
  static void Read(const Tensor& bias, DumpForTest& side) {
    side.Add("Functional.linear.0.forward",
             Values({3, -2, 0.2, 4}) + "," + Values(kWeight, true) + "," + Values(bias, true),
             Values({1, -1, 0.1, 2}));
  }
  static void Update(const Tensor& parameter, const Tensor& gradient, DumpForTest& side, int number,
                     const std::string& api = "add_") {
    side.Add(fmt::format("Tensor.{}.{}.forward", api, number),
             Values(parameter, true) + "," + Values(gradient),
             Values(Minus(parameter, gradient), true));
  }
};

TEST_F(SkippedUpdateTest, OfTheTargetIsNamed) {
  Update(kWeight, kGradient, target_, 0);
  Update(kWeight, kGradient, golden_, 0);
  Update(kBias, kOther, golden_, 1);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  const FirstWrongCall& answer = *comparison.first_wrong_call;
  EXPECT_EQ(answer.name, "Tensor.add_.1.forward");
  EXPECT_EQ(answer.what,
            "golden alone updates this parameter [8] (norm 0.4 before, 0.45 after), the target "
            "leaves it as it is");
  EXPECT_EQ(answer.cause, "missing-call");
  EXPECT_EQ(answer.confidence, "high");
  EXPECT_TRUE(FailsOn(comparison, {"broken"}).value());
}

TEST_F(SkippedUpdateTest, OfGoldenIsNamed) {
  Update(kWeight, kGradient, golden_, 0);
  Update(kWeight, kGradient, target_, 0);
  Update(kBias, kOther, target_, 1);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.add_.1.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "extra-call");
}

// `p.data.add_(...)`: what is written into requires no gradient, and is a parameter all the same.
TEST_F(SkippedUpdateTest, OfTheTensorBehindAParameterIsNamed) {
  const auto update = [](const Tensor& data, const Tensor& gradient, DumpForTest& side,
                         int number) {
    side.Add(fmt::format("Tensor.add_.{}.forward", number), Values(data) + "," + Values(gradient),
             Values(Minus(data, gradient)));
  };
  for (DumpForTest* side : {&target_, &golden_}) update(kWeight, kGradient, *side, 0);
  update(kBias, kOther, golden_, 1);
  EXPECT_EQ(Named(), "Tensor.add_.1.forward");
}

// A recording of some calls by their names: number 1 was made and not kept.
TEST_F(SkippedUpdateTest, WhatWasNotAskedForIsNotSkipped) {
  const auto update_third = [](DumpForTest& side) {
    side.Add("Tensor.add_.2.forward", Values(kOther, true) + "," + Values(kGradient),
             Values(Minus(kOther, kGradient), true));
  };
  Update(kWeight, kGradient, target_, 0);
  update_third(target_);
  Update(kWeight, kGradient, golden_, 0);
  Update(kBias, kOther, golden_, 1);
  update_third(golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(SkippedUpdateTest, AnotherWayToUpdateItIsNone) {
  Update(kWeight, kGradient, target_, 0);
  Update(kWeight, kGradient, golden_, 0);
  Update(kBias, kOther, golden_, 1);
  Update(kBias, kOther, target_, 0, "sub_");
  EXPECT_EQ(Named(), "");
}

TEST_F(SkippedUpdateTest, NorIsOneThatIsComputedElsewhere) {
  Update(kWeight, kGradient, target_, 0);
  Update(kWeight, kGradient, golden_, 0);
  Update(kBias, kOther, golden_, 1);
  target_.Add("Tensor.sub.0.forward", Values(kBias, true) + "," + Values(kOther),
              Values(Minus(kBias, kOther)));
  EXPECT_EQ(Named(), "");
}

// Two steps of a weight and a bias, which has fewer elements; the last ones of golden alone.
class SecondStepTest : public SkippedUpdateTest {
 protected:
  static std::string Fewer(std::string text) {
    for (size_t at = text.find("[8]"); at != text.npos; at = text.find("[8]")) {
      text.replace(at, 3, "[4]");
    }
    return text;
  }
  static void UpdateBias(const Tensor& bias, DumpForTest& side, const std::string& api, int number,
                         bool is_parameter) {
    side.Add(fmt::format("Tensor.{}.{}.forward", api, number),
             Fewer(Values(bias, is_parameter) + "," + Values(kOther)),
             Fewer(Values(Minus(bias, kOther), is_parameter)));
  }
  static void Read(DumpForTest& side, int number) {
    side.Add(fmt::format("Torch.exp.{}.forward", number), Values(kOther), Values(kGradient));
  }
  void Record(int in_second, const std::string& api = "add_", bool is_parameter = true) {
    for (DumpForTest* side : {&target_, &golden_}) {
      Read(*side, 0);
      Step(*side, api, 0, is_parameter, kWeight);
      UpdateBias(kBias, *side, api, 1, is_parameter);
      Read(*side, 1);
      if (in_second > 0 || side == &golden_) {
        Step(*side, api, 2, is_parameter, Minus(kWeight, kGradient));
      }
    }
    UpdateBias(Minus(kBias, kOther), golden_, api, 3, is_parameter);
  }

 private:
  static void Step(DumpForTest& side, const std::string& api, int number, bool is_parameter,
                   const Tensor& weight) {
    side.Add(fmt::format("Tensor.{}.{}.forward", api, number),
             Values(weight, is_parameter) + "," + Values(kGradient),
             Values(Minus(weight, kGradient), is_parameter));
  }
};

TEST_F(SecondStepTest, OfAParameterIsNamed) {
  Record(1);
  EXPECT_EQ(Named(), "Tensor.add_.3.forward");
}

// What an optimizer keeps is written into by both sides before.
TEST_F(SecondStepTest, OfAnAverageIsNamed) {
  Record(1, "lerp_", false);
  EXPECT_EQ(Named(), "Tensor.lerp_.3.forward");
}

// The other side records one step less.
TEST_F(SecondStepTest, OfAllIsNone) {
  Record(0);
  EXPECT_EQ(Named(), "");
}

// Golden scales the parameters before the step, the target not this one.
TEST_F(SkippedUpdateTest, BeforeTheNextIsNamed) {
  constexpr Tensor kScaled{0.2, -0.1, 0.024, 0.32};
  for (DumpForTest* side : {&target_, &golden_}) Update(kWeight, kGradient, *side, 0, "mul_");
  golden_.Add("Tensor.mul_.1.forward", Values(kBias, true), Values(kScaled, true));
  Update(kScaled, kOther, golden_, 0);
  Update(kBias, kOther, target_, 0);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.mul_.1.forward");
}

// Parameters that the target updates all at once, in no recorded call; a moment gets the same call.
TEST_F(SkippedUpdateTest, OfParametersAlonePairsOfParametersTell) {
  const auto add = [](const Tensor& kept, DumpForTest& side) {
    side.Add("Tensor.add_.0.forward", Values(kept) + "," + Values(kGradient),
             Values(Minus(kept, kGradient)));
  };
  for (DumpForTest* side : {&target_, &golden_}) add(kOther, *side);
  Update(kWeight, kGradient, golden_, 1);
  Update(kBias, kOther, golden_, 2);
  EXPECT_EQ(Named(), "");
}

// An optimizer that the other side does not record at all.
TEST_F(SkippedUpdateTest, WithoutAnyUpdateOnTheOtherSideNothingIsSkipped) {
  Update(kWeight, kGradient, golden_, 0);
  Update(kBias, kOther, golden_, 1);
  EXPECT_EQ(Named(), "");
}

// A buffer is no parameter.
TEST_F(SkippedUpdateTest, WhatRequiresNoGradientMayBeWrittenByOneSide) {
  const auto buffer = [](const Tensor& of, bool is_parameter) {
    std::string text = Values(of, is_parameter);
    return text.replace(text.find("[8]"), 3, "[4]");
  };
  for (const bool is_parameter : {false, true}) {
    DumpForTest target(directory_.Path(fmt::format("target{}", is_parameter)));
    DumpForTest golden(directory_.Path(fmt::format("golden{}", is_parameter)));
    for (DumpForTest* side : {&target, &golden}) {
      Update(kWeight, kGradient, *side, 0);
      side->Add("Torch.exp.0.forward", buffer(kOther, is_parameter), buffer(kGradient, false));
    }
    golden.Add("Tensor.add_.1.forward", buffer(kOther, is_parameter) + "," + buffer(kBias, false),
               buffer(Minus(kOther, kBias), is_parameter));
    const Result<Comparison> comparison = CompareRuns(target.Write(), golden.Write(), {});
    ASSERT_TRUE(comparison);
    EXPECT_EQ(comparison->first_wrong_call.has_value(), is_parameter);
  }
}

TEST(SkippedUpdate, OfSeveralEqualParametersAsManyMustBeUpdated) {
  testing::TestDirectory directory;
  DumpForTest target(directory.Path("target")), golden(directory.Path("golden"));
  const auto record = [](DumpForTest& side, int updates) {
    side.Add("Functional.linear.0.forward",
             Values({3, -2, 0.2, 4}) + "," + Values(kWeight, true) + "," + Values(kZeros, true),
             Values({1, -1, 0.1, 2}));
    for (int i = 0; i < updates; ++i) {
      const Tensor gradient{0.3 + 0.1 * i, -0.2, 0.05, 0.6 + 0.1 * i};
      side.Add(fmt::format("Tensor.add_.{}.forward", i),
               Values(kZeros, true) + "," + Values(gradient),
               Values(Minus(kZeros, gradient), true));
      if (i == 1) side.Add("Torch.exp.0.forward", Values(kWeight), Values(kOther));
    }
  };
  record(target, 2);
  record(golden, 3);
  const Result<Comparison> comparison = CompareRuns(target.Write(), golden.Write(), {});
  ASSERT_TRUE(comparison);
  ASSERT_TRUE(comparison->first_wrong_call);
  EXPECT_EQ(comparison->first_wrong_call->name, "Tensor.add_.2.forward");
}

}  // namespace
}  // namespace plumbline
