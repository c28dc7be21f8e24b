#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verdict/comparison_for_test.h"
#include "verdict/missed_updates.h"
#include "verdict/optimizer_steps.h"

namespace plumbline::verdict::steps_test {

// Steps that are a number of times as long as another.

namespace {

constexpr size_t kCount = 256;

// Numbers of either sign without pattern, none larger than one.
std::vector<double> Numbers(double seed, size_t count = kCount) {
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = std::sin((17.3 + seed) * static_cast<double>(i) * static_cast<double>(i + 1));
  }
  return numbers;
}

std::vector<double> Times(double factor, const std::vector<double>& step,
                          const std::vector<double>& noise = {}, double size = 0) {
  std::vector<double> made(step);
  for (size_t i = 0; i < made.size(); ++i) made[i] *= factor;
  for (size_t i = 0; i < noise.size(); ++i) made[i] += size * noise[i];
  return made;
}

TEST(ScaledStep, OneFactorInAllElementsIsFound) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 1e-4);
  const auto found = FindFactor(Times(1.01, golden, Numbers(2), 1e-4), golden, rounding, 1e-6);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->factor, 1.01, 1e-4);
  EXPECT_LT(found->explained, 1e-3);
}

// Of a weight that is 10,000 times as large as its step.
TEST(ScaledStep, BeneathTheRoundingOfEachElement) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 0.006);
  EXPECT_TRUE(FindFactor(Times(1.01, golden, Numbers(2), 0.006), golden, rounding, 1e-6));
  EXPECT_FALSE(FindFactor(Times(1.001, golden, Numbers(2), 0.006), golden, rounding, 1e-6));
}

TEST(ScaledStep, NoiseOfSingleElementsIsNone) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 1e-6);
  EXPECT_FALSE(FindFactor(Times(1, golden, Numbers(2), 0.01), golden, rounding, 1e-6));
  std::vector<double> turned = golden;  // an element that is rounding, under Adam
  turned[7] = -turned[7];
  EXPECT_FALSE(FindFactor(turned, golden, rounding, 1e-6));
}

// A norm that limits all gradients is as noisy as these.
TEST(ScaledStep, AFactorNoLargerThanTheNoiseIsNone) {
  const std::vector<double> golden = Numbers(1), rounding(kCount, 1e-6);
  EXPECT_FALSE(FindFactor(Times(1.001, golden), golden, rounding, 1e-3));
  EXPECT_TRUE(FindFactor(Times(1.01, golden), golden, rounding, 1e-3));
}

TEST(ScaledStep, AFewElementsTellNothing) {
  const std::vector<double> golden = Numbers(1, 8), rounding(8, 1e-6);
  EXPECT_FALSE(FindFactor(Times(1.5, golden), golden, rounding, 1e-6));
  EXPECT_FALSE(FindFactor({}, {}, {}, 0));
  const std::vector<double> still(kCount, 0.0);
  EXPECT_FALSE(FindFactor(golden, still, still, 0));
}

}  // namespace

}  // namespace plumbline::verdict::steps_test

namespace plumbline::steps_test {

// A parameter that one side does not update: pairs of small dumps.

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

}  // namespace plumbline::steps_test

namespace plumbline::verdict::steps_test {

namespace {

// Two steps, a call in each: a bias is read, added, and a softmax follows.
class UnseenUpdate : public ::testing::Test {
 protected:
  struct Facts {
    double moved = 0.101;  // of golden's bias, by 0.001
    double added = 1e-3;   // relative error of what the bias is added to
    double result = 1e-7;  // and of what follows
    bool is_read = true;
    bool is_view = false;  // what is read instead
    bool has_gradients = false;
    Shape shape = {8};
  };

  static Item Named(Item item, const std::string& name) {
    item.name = name;
    return item;
  }
  static Item Bias(double max, const Shape& shape) {
    Item item = TensorForTest({max, -0.1, 0.01, 0.2}, shape);
    item.requires_grad = true;
    return item;
  }
  static Item Value(double max) { return TensorForTest({max, -max, 0.01, 2 * max}, {4, 8}); }

  // `target` against `golden`, in a row that was judged.
  void Row(ItemRole role, const Item& target, const Item& golden, double error,
           const std::string& name) {
    whole_.Row(role, Named(target, name), Named(golden, name));
    whole_.last_row().error = error;
    whole_.last_row().verdict = error > 1e-5 ? Verdict::kBroken : Verdict::kWithinNoise;
  }

  std::vector<uint32_t> Find(const Facts& facts) {
    const std::string first = "Functional.linear.1000000000.forward",
                      second = "Functional.linear.0.forward", last = "Torch.softmax.0.forward";
    whole_.Pair(first);
    Row(ItemRole::kInput, Bias(0.1, facts.shape), Bias(0.1, facts.shape), 0, first + ".input.2");
    if (facts.has_gradients) whole_.Pair("Functional.linear.1000000000.backward");
    whole_.Pair(second);
    Row(ItemRole::kInput, Bias(facts.moved, facts.shape), Bias(0.102, facts.shape), 1e-2,
        second + ".input.2");
    whole_.last_row().reason = "input-differs";
    Row(ItemRole::kOutput, Value(1.1), Value(1), facts.added, second + ".output.0");
    whole_.Pair(last);
    Item read = Value(facts.is_read ? 1.1 : 1.3), golden = Value(1);
    for (Item* item : {&read, &golden}) {
      item->requires_grad = true;
      if (facts.is_view) item->shape = Shape{2, 4, 4};
    }
    Row(ItemRole::kInput, read, golden, facts.added, last + ".input.0");
    Row(ItemRole::kOutput, Value(0.5), Value(0.5), facts.result, last + ".output.0");
    Comparison comparison = whole_.get();
    comparison.earlier.push_back({"a", "b", "", "", facts.has_gradients ? 2U : 1U});
    return UpdatesWithoutEffect(comparison);
  }

  ComparisonForTest whole_;
};

TEST_F(UnseenUpdate, OfWhichNothingComesIsFound) { EXPECT_EQ(Find({}), std::vector<uint32_t>{1}); }

TEST_F(UnseenUpdate, WithAnEffectIsNone) { EXPECT_TRUE(Find({.result = 1e-3}).empty()); }

TEST_F(UnseenUpdate, WhoseResultNothingReadsIsNone) {
  EXPECT_TRUE(Find({.is_read = false}).empty());
}

TEST_F(UnseenUpdate, OfWhichAViewIsReadIsFound) {
  EXPECT_EQ(Find({.is_read = false, .is_view = true}), std::vector<uint32_t>{1});
}

TEST_F(UnseenUpdate, ThatIsLongerThanAnyStepIsNone) { EXPECT_TRUE(Find({.moved = 0.2}).empty()); }

TEST_F(UnseenUpdate, WhoseGradientIsRecordedInFourNumbersIsFound) {
  EXPECT_EQ(Find({.has_gradients = true}), std::vector<uint32_t>{1});
}

TEST_F(UnseenUpdate, OfAMatrixIsNone) { EXPECT_TRUE(Find({.shape = {4, 2}}).empty()); }

TEST_F(UnseenUpdate, IsCountedAndWarnedOf) {
  Comparison comparison;
  {
    ComparisonForTest made;
    made.Pair("Functional.linear.0.forward").In(Bias(1, {8}));
    comparison = made.get();
  }
  comparison.rows[0].target->name = "Functional.linear.0.forward.input.2";
  comparison.rows[0].reason = kUnproven;
  comparison.rows[0].error = 0.01;
  ReportUnproven(comparison);
  EXPECT_EQ(comparison.counts.missing_values, 1U);
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_TRUE(comparison.warnings[0].starts_with(
      "Functional.linear.0.forward.input.2 is not judged: it differs (relative error 0.01)"));
  EXPECT_FALSE(comparison.is_complete());
}

}  // namespace

namespace {

class FrozenParameter : public ::testing::Test {
 protected:
  // A call that reads a value and a parameter, of which each side says whether it is trained.
  void Read(const std::string& name, bool target, bool golden) {
    Item of_target = kWeight, of_golden = kWeight;
    of_target.requires_grad = target;
    of_golden.requires_grad = golden;
    whole_.Pair(name).Row(ItemRole::kInput, of_target, of_golden);
    Name(name);
    whole_.last_row().verdict = Verdict::kSame;
  }
  void Backward() { whole_.Pair("Functional.linear.0.backward").In(kWeight); }

  std::optional<CulpritEvent> Find() const { return FindFrozenParameter(whole_.get()); }

  ComparisonForTest whole_;

 private:
  void Name(const std::string& call) {
    whole_.last_row().target->name = call + ".input.1";
    whole_.last_row().golden->name = call + ".input.1";
  }
  const Item kWeight = TensorForTest({1, -1, 0.1, 2});
};

TEST_F(FrozenParameter, OfTheTargetIsNamed) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", false, true);
  Read("Module.fc.Linear.forward.2", false, true);
  const std::optional<CulpritEvent> event = Find();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->call, 2U);
  EXPECT_EQ(event->fact.what,
            "input.1 requires no gradient (golden's does), although both did before");
  EXPECT_EQ(event->fact.cause, "argument");
}

TEST_F(FrozenParameter, OfGoldenIsNamed) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", true, false);
  ASSERT_TRUE(Find());
  EXPECT_EQ(Find()->fact.what,
            "input.1 requires a gradient (golden's does not), although both did before");
}

TEST_F(FrozenParameter, OfCallsInStepsOfTheirOwnIsToldByTheNumberInTheStep) {
  Read("Functional.linear.1000000003.forward", true, true);
  Backward();
  Read("Functional.linear.4.forward", false, true);  // another call
  EXPECT_FALSE(Find());
  Read("Functional.linear.3.forward", false, true);
  ASSERT_TRUE(Find());
  EXPECT_EQ(Find()->call, 3U);
}

TEST_F(FrozenParameter, ThatWasTrainedOnOneSideOnlyBeforeIsNone) {
  Backward();
  Read("Module.fc.Linear.forward.0", false, true);  // folded, say
  Read("Module.fc.Linear.forward.1", false, true);
  EXPECT_FALSE(Find());
}

TEST_F(FrozenParameter, OnBothSidesIsNone) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", false, false);
  EXPECT_FALSE(Find());
}

TEST_F(FrozenParameter, WhereNoGradientsWereRecordedIsNone) {
  Read("Module.fc.Linear.forward.0", true, true);
  Read("Module.fc.Linear.forward.1", false, true);
  EXPECT_FALSE(Find());
}

TEST_F(FrozenParameter, ThatIsAnotherAnywayIsNamedForThat) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", false, true);
  whole_.last_row().verdict = Verdict::kBroken;
  EXPECT_FALSE(Find());
}

}  // namespace

}  // namespace plumbline::verdict::steps_test
