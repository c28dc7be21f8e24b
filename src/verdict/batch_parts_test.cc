#include "verdict/batch_parts.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/comparison_for_test.h"
#include "verdict/other_batch.h"

namespace plumbline::batch_parts_test {

// What the parts of a batch come to together: pairs of small dumps.

namespace {

using PartTotalsTest = PartsTest;

TEST_F(PartTotalsTest, SumsOfAllPartsAreRight) {
  Record(kInTwo, target_);
  Record(kInOne, golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(PartTotalsTest, MeansOfAllPartsAreRight) {
  Record({{kFirst, 4, 3.1, 0.5}, {kSecond, 4, 2.1, 0.5}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(PartTotalsTest, TheFirstCallOfAPartThatDiffersIsNamedWhereTheSumOfAllDoes) {
  std::vector<Part> parts = kInTwo;
  parts[1].scale = 0.55;
  parts[1].loss = 9;
  Record(parts, target_);
  Record(kInOne, golden_);
  RecordStep(1.1, target_);
  RecordStep(1, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Torch.tanh.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "unexplained");
  EXPECT_EQ(comparison.first_wrong_call->confidence, "low");
}

// The loss itself: other labels.
TEST_F(PartTotalsTest, ALossThatDoesNotAddUpIsNamed) {
  std::vector<Part> parts = kInTwo;
  parts[1].loss = 11;
  Record(parts, target_);
  Record(kInOne, golden_);
  RecordStep(1.1, target_);
  RecordStep(1, golden_);
  EXPECT_EQ(Named(), "Functional.loss.0.forward");
}

// Gradients of a part that are thrown away before the next show in their sum alone.
TEST_F(PartTotalsTest, WhereNoSumIsReadTheFirstLineSaysSo) {
  constexpr std::string_view kUnread = "nothing recorded reads the gradients of all parts";
  Record(kInTwo, target_);
  Record(kInOne, golden_);
  EXPECT_NE(SummaryText(Compare()).find(kUnread), std::string::npos);
  RecordStep(1, target_);
  RecordStep(1, golden_);
  EXPECT_EQ(SummaryText(Compare()).find(kUnread), std::string::npos);
}

// A cast that no recorder sees: norms of bfloat16 numbers and of the same as float32 differ in
// their last digits.
TEST_F(PartTotalsTest, PartsAreFollowedThroughACastToAWiderType) {
  const auto record = [](const std::vector<Part>& parts, DumpForTest& side) {
    Record(parts, side, false, "bfloat16");
    int k = 0;
    for (const Part& part : parts) {
      Numbers wide = Times(part.data, part.scale);
      wide.norm *= 1 + 1e-6;
      const std::string shape = fmt::format("[{}, 3]", part.samples);
      side.Add(fmt::format("Torch.exp.{}.forward", k++), Values(wide, shape),
               Values(Times(part.data, 0.3), shape));
    }
    RecordStep(1, side);
  };
  record(kInTwo, target_);
  record(kInOne, golden_);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->name;
  for (const ComparedCall& call : comparison.calls) {
    EXPECT_EQ(call.unmatched_reason, call.name() == "Tensor.mul.0.forward" ? "" : "other-batch")
        << call.name();
  }
}

TEST_F(PartTotalsTest, WithoutGradientsWhatNoRoundingExplainsIsNamed) {
  for (const double scale : {0.5, 0.55}) {
    DumpForTest target(directory_.Path(fmt::format("target{}", scale)));
    DumpForTest golden(directory_.Path(fmt::format("golden{}", scale)));
    std::vector<Part> parts = kInTwo;
    parts[1].scale = scale;
    Record(parts, target, /*has_backward=*/false);
    Record(kInOne, golden, /*has_backward=*/false);
    const Result<Comparison> comparison = CompareRuns(target.Write(), golden.Write(), {});
    ASSERT_TRUE(comparison);
    EXPECT_EQ(comparison->first_wrong_call.has_value(), scale != 0.5);
  }
}

}  // namespace

// How much the loss of each part of a batch counts: pairs of small dumps.

namespace {

using PartWeightsTest = PartsTest;

TEST_F(PartWeightsTest, APartOfAnotherWeightIsNamed) {
  Record({kInTwo[0], {kSecond, 4, 8.1, 0.1275}}, target_);
  Record(kInOne, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  const FirstWrongCall& answer = *comparison.first_wrong_call;
  EXPECT_EQ(answer.name, "Tensor.__mul__.1.forward");
  EXPECT_EQ(answer.cause, "scale");
  EXPECT_EQ(answer.cause_text, "the loss of part 2 of 2 weighs 1.02 times as much as golden's");
  EXPECT_TRUE(FailsOn(comparison, {"broken"}).value());
}

TEST_F(PartWeightsTest, MeansThatAreNotDividedAreNamed) {
  Record({{kFirst, 4, 3.1, 1}, {kSecond, 4, 2.1, 1}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  RecordStep(2, target_);
  RecordStep(1, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.__mul__.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "scale");
  EXPECT_EQ(comparison.first_wrong_call->cause_text,
            "the losses of all parts together weigh 2 times as much as golden's");
}

// Gradients that are divided after they were added up.
TEST_F(PartWeightsTest, MeansThatAreDividedLaterAreRight) {
  Record({{kFirst, 4, 3.1, 1}, {kSecond, 4, 2.1, 1}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  RecordStep(1, target_);
  RecordStep(1, golden_);
  EXPECT_EQ(Named(), "");
}

}  // namespace

// The same data in other parts: pairs of small dumps.

namespace {

struct Numbers {
  double max, min, mean, norm;
};

std::string Values(const Numbers& of, const std::string& shape) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false}})",
                     shape, of.max, of.min, of.mean, of.norm);
}

// Of a parameter.
std::string Weight() {
  std::string text = Values({0.5, -0.5, 0.1, 0.9}, "[2, 3]");
  return text.replace(text.rfind("false"), 5, "true");
}

std::string Scalar(double value) { return Values({value, value, value, value}, "[]"); }

// One batch of eight samples and its halves: 10^2 = 8^2 + 6^2.
constexpr Numbers kWhole{4, -3, 0.5, 10}, kFirst{4, -2, 0.75, 8}, kSecond{1, -3, 0.25, 6};
// The gradients of its halves, each of half the loss, and their sum.
constexpr Numbers kOnes{0.2, -0.1, 0.05, 0.3}, kOthers{0.3, -0.2, 0.03, 0.4},
    kSum{0.4, -0.25, 0.08, 0.6};

struct Part {
  Numbers data, gradient;
  int samples;
};
const std::vector<Part> kInOne{{kWhole, kSum, 8}};
const std::vector<Part> kInTwo{{kFirst, kOnes, 4}, {kSecond, kOthers, 4}};

class OtherBatchTest : public TwoDumpsTest {
 protected:
  // A layer, its loss and their gradients, part by part.
  static void Record(const std::vector<Part>& parts, DumpForTest& side) {
    int k = 0;
    for (const Part& part : parts) {
      const std::string results = fmt::format("[{}, 2]", part.samples);
      const Numbers seen{part.data.max / 3, part.data.min / 3, part.data.mean, part.data.norm / 2};
      const Numbers back{part.gradient.max / 7, part.gradient.min / 7, 0.001, 0.02};
      const std::string loss = Scalar(part.data.mean * 0.3 + 0.01);
      side.Add(fmt::format("Functional.linear.{}.forward", k),
               Values(part.data, fmt::format("[{}, 3]", part.samples)) + "," + Weight(),
               Values(seen, results))
          .Add(fmt::format("Tensor.mean.{}.forward", k), Values(seen, results), loss)
          .Add(fmt::format("Tensor.mean.{}.backward", k), Scalar(1), Values(back, results))
          .Add(fmt::format("Functional.linear.{}.backward", k), Values(back, results),
               Values(part.gradient, "[2, 3]"));
      ++k;
    }
  }
  // What an optimizer makes of the gradient.
  static void RecordStep(const Numbers& gradient, DumpForTest& side) {
    const Numbers step{gradient.max / 10, gradient.min / 10, gradient.mean / 10,
                       gradient.norm / 10};
    side.Add("Tensor.mul.0.forward", Values(gradient, "[2, 3]") + "," + ScalarJson("float", "0.1"),
             Values(step, "[2, 3]"));
  }
};

TEST_F(OtherBatchTest, AnotherCutIsSaidAndIsNoWrongCall) {
  Record(kInTwo, target_);
  Record(kInOne, golden_);
  RecordStep(kSum, target_);
  RecordStep(kSum, golden_);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  const std::string text = SummaryText(comparison);
  EXPECT_TRUE(
      text.starts_with("not judged completely: the batch is cut otherwise from "
                       "Functional.linear.0.forward on (2 of [4, 3] against 1 of [8, 3]), "))
      << text;
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  for (const ComparedCall& call : comparison.calls) {
    EXPECT_EQ(call.unmatched_reason, call.name() == "Tensor.mul.0.forward" ? "" : "other-batch")
        << call.name();
  }
}

TEST_F(OtherBatchTest, NorWhereGoldenHasTheParts) {
  Record(kInOne, target_);
  Record(kInTwo, golden_);
  RecordStep(kSum, target_);
  RecordStep(kSum, golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(OtherBatchTest, ASumOfAllPartsThatDiffersIsNamed) {
  Record(kInTwo, target_);
  Record(kInOne, golden_);
  RecordStep({0.8, -0.5, 0.16, 1.2}, target_);  // not divided by the number of parts
  RecordStep(kSum, golden_);
  EXPECT_EQ(Named(), "Tensor.mean.0.forward");  // each loss weighs as much as golden's
}

TEST_F(OtherBatchTest, SamplesThatAreLeftOutAreTold) {
  Record({kInTwo.front()}, target_);
  Record(kInOne, golden_);
  EXPECT_EQ(Named(), "Functional.linear.0.forward");
}

TEST_F(OtherBatchTest, OtherDataAreTold) {
  Record({{{4.5, -2, 0.75, 8}, kOnes, 4}, kInTwo.back()}, target_);
  Record(kInOne, golden_);
  EXPECT_EQ(Named(), "Functional.linear.0.forward");
}

TEST_F(OtherBatchTest, GradientsThatDoNotAddUpAreTold) {
  Record({kInTwo.front(), {kSecond, {0.6, -0.4, 0.06, 0.8}, 4}}, target_);
  Record(kInOne, golden_);
  EXPECT_EQ(Named(), "Tensor.mean.0.forward");  // each loss weighs as much as golden's
}

// Scores of both halves, laid together, and what is made of them.
void RecordJoined(const Numbers& together, const Numbers& shares, DumpForTest& target,
                  DumpForTest& golden) {
  const Numbers scores{1.3, -1.2, 0.2, 3.2};
  const Numbers halves[] = {{1.3, -0.9, 0.3, 2.5}, {1.1, -1.2, 0.1, 2}};
  const std::string weight = Weight();
  golden.Add("Functional.linear.0.forward", Values(kWhole, "[8, 3]") + "," + weight,
             Values(scores, "[8, 2]"));
  target
      .Add("Functional.linear.0.forward", Values(kFirst, "[4, 3]") + "," + weight,
           Values(halves[0], "[4, 2]"))
      .Add("Functional.linear.1.forward", Values(kSecond, "[4, 3]") + "," + weight,
           Values(halves[1], "[4, 2]"))
      .Add("Torch.cat.0.forward", Values(halves[0], "[4, 2]") + "," + Values(halves[1], "[4, 2]"),
           Values(together, "[8, 2]"));
  target.Add("Torch.exp.0.forward", Values(together, "[8, 2]"), Values(shares, "[8, 2]"));
  golden.Add("Torch.exp.0.forward", Values(scores, "[8, 2]"), Values({3.7, 0.3, 1.3, 6}, "[8, 2]"));
}

TEST_F(OtherBatchTest, WhatIsMadeOfAllPartsTogetherIsCompared) {
  RecordJoined({1.3, -1.2, 0.2, 3.2}, {3.7, 0.3, 1.3, 6}, target_, golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(OtherBatchTest, PartsThatComeToSomethingElseAreNamed) {
  RecordJoined({1.3, -1.25, 0.19, 3.3}, {3.7, 0.28, 1.29, 6.1}, target_, golden_);
  EXPECT_EQ(Named(), "Functional.linear.0.forward");
}

TEST_F(OtherBatchTest, AFaultBeforeTheDataIsNamed) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const double scale = side == &target_ ? 1.01 : 1;
    side->Add("Torch.tanh.0.forward", Values({7, -7, 1, 9}, "[5]"),
              Values({0.9 * scale, -0.9, 0.1, 1.5 * scale}, "[5]"));
  }
  Record(kInTwo, target_);
  Record(kInOne, golden_);
  EXPECT_EQ(Named(), "Torch.tanh.0.forward");
}

// --- the data alone ---

using verdict::ComparisonForTest;
using verdict::TensorForTest;

TEST(DataParts, AWeightInTwoIsNoBatchInTwo) {
  const Item values = TensorForTest({2, -2, 0.3, 5}, {8, 3});
  const Item weight = TensorForTest({4, -3, 0.5, 10}, {6, 3});
  const Item upper = TensorForTest({4, -2, 0.75, 8}, {3, 3});
  const Item lower = TensorForTest({1, -3, 0.25, 6}, {3, 3});
  const Item scores = TensorForTest({1, -1, 0, 3}, {8, 6});
  const Item half = TensorForTest({0.9, -1, 0, 2}, {8, 3});
  ComparisonForTest calls;
  calls.Golden("Functional.linear.0.forward", "shape-differs");
  calls.Row(ItemRole::kInput, {}, values).Row(ItemRole::kInput, {}, weight).GoldenOut(scores);
  calls.Target("Functional.linear.0.forward", "shape-differs");
  calls.TargetIn(values).TargetIn(upper).TargetOut(half);
  calls.Target("Functional.linear.1.forward");
  calls.TargetIn(values).TargetIn(lower).TargetOut(half);
  EXPECT_TRUE(verdict::FindDataParts(calls.get()).empty());
  EXPECT_TRUE(verdict::FindOtherBatch(calls.get()).empty());
}

TEST(DataParts, WhatIsComputedIsNoData) {
  const Item whole = TensorForTest({4, -3, 0.5, 10}, {8, 3});
  const Item first = TensorForTest({4, -2, 0.75, 8}, {4, 3});
  const Item second = TensorForTest({1, -3, 0.25, 6}, {4, 3});
  const auto made_of = [](const Item& item) {
    return TensorForTest({9, 1, 3, 20}, {item.shape[0], 3});
  };
  const auto parts_of = [&](const std::string& maker) {
    ComparisonForTest calls;
    calls.Golden(maker).GoldenOut(whole);
    calls.Target(maker).TargetOut(first).TargetOut(second);
    calls.Golden("Torch.exp.0.forward", "shape-differs").Row(ItemRole::kInput, {}, whole);
    calls.GoldenOut(made_of(whole));
    for (const Item& part : {first, second}) {
      calls.Target("Torch.exp.0.forward", "shape-differs").TargetIn(part).TargetOut(made_of(part));
    }
    return verdict::FindDataParts(calls.get()).size();
  };
  EXPECT_EQ(parts_of("Torch.matmul.0.forward"), 0);
  EXPECT_EQ(parts_of("Tensor.chunk.0.forward"), 2);  // what it returns, and what is read of it
}

TEST(DataParts, HoldTheSameWithAllStatisticsOnly) {
  const Item whole = TensorForTest({4, -3, 0.5, 10}, {8, 3});
  const Item first = TensorForTest({4, -2, 0.75, 8}, {4, 3});
  const auto same = [&](const Item& second) {
    const std::vector<verdict::DataPart> parts{{0, &first}, {1, &second}}, all{{2, &whole}};
    return verdict::HoldTheSame(parts, all);
  };
  EXPECT_TRUE(same(TensorForTest({1, -3, 0.25, 6}, {4, 3})));
  EXPECT_FALSE(same(TensorForTest({1, -3, 0.25, 6}, {2, 3})));
  EXPECT_FALSE(same(TensorForTest({1, -2.9, 0.25, 6}, {4, 3})));
  EXPECT_FALSE(same(TensorForTest({1, -3, 0.251, 6}, {4, 3})));
  EXPECT_FALSE(same(TensorForTest({1, -3, 0.25, 6.01}, {4, 3})));
  EXPECT_FALSE(
      same(TensorForTest({std::numeric_limits<double>::quiet_NaN(), -3, 0.25, 6}, {4, 3})));
  Item bare = TensorForTest({1, -3, 0.25, 6}, {4, 3});
  bare.statistics[2] = Recorded();
  EXPECT_FALSE(same(bare));
}

}  // namespace

}  // namespace plumbline::batch_parts_test

namespace plumbline::verdict::batch_parts_test {

namespace {

Item Sized(double size, Shape shape = {8}) {
  const double norm = size * (shape.size() == 1 ? 3 : 24);
  return TensorForTest({size, -size / 2, size / 9, norm}, std::move(shape));
}

class WithoutInputs : public ::testing::Test {
 protected:
  void Judged(Verdict verdict, double error) {
    whole_.last_row().verdict = verdict;
    whole_.last_row().error = error;
  }
  // Gradients of a module: a weight that agrees, and a bias.
  void Gradients(const Item& target, const Item& golden) {
    whole_.Pair("Module.fc.Linear.parameters_grad");
    whole_.Row(ItemRole::kParameterGrad, Sized(1, {8, 8}), Sized(1, {8, 8}));
    Judged(Verdict::kWithinNoise, 1e-7);
    whole_.Row(ItemRole::kParameterGrad, target, golden);
    Judged(Verdict::kBroken, 1.2);
  }
  void Result(const std::string& name, bool is_wrong) {
    whole_.Pair(name).Out(Sized(is_wrong ? 1.1 : 1), Sized(1));
    Judged(is_wrong ? Verdict::kBroken : Verdict::kWithinNoise, is_wrong ? 1e-2 : 1e-8);
  }
  std::vector<uint32_t> Find(bool has_steps = true) {
    Comparison comparison = whole_.get();
    if (has_steps) comparison.earlier.push_back({"a", "b", "", "", 1});
    return ResultsWithoutProof(comparison);
  }

  ComparisonForTest whole_;
};

TEST_F(WithoutInputs, AGradientOfRoundingIsFound) {
  Gradients(TensorForTest({2e-7, -3e-7, 1e-8, 5e-7}, {8}), Sized(1e-7));
  EXPECT_EQ(Find(false), std::vector<uint32_t>{1});
}

TEST_F(WithoutInputs, ALargerGradientIsNone) {
  Gradients(TensorForTest({2e-3, -3e-3, 1e-4, 5e-3}, {8}), Sized(1e-7));
  EXPECT_TRUE(Find(false).empty());
}

TEST_F(WithoutInputs, AMultipleOfGoldenIsNone) {
  Gradients(Sized(3e-7), Sized(1e-7));
  EXPECT_TRUE(Find(false).empty());
}

TEST_F(WithoutInputs, WhereInputsAreRecordedNothingIsFound) {
  Gradients(TensorForTest({2e-7, -3e-7, 1e-8, 5e-7}, {8}), Sized(1e-7));
  whole_.Pair("Functional.relu.0.forward").In(Sized(1));
  EXPECT_TRUE(Find(false).empty());
}

TEST_F(WithoutInputs, AResultBeforeASoftmaxThatAgreesIsFound) {
  Result("Functional.linear.1000000000.forward", false);
  Result("Functional.linear.0.forward", true);
  Result("Torch.softmax.0.forward", false);
  EXPECT_EQ(Find(), std::vector<uint32_t>{1});
}

TEST_F(WithoutInputs, AResultBeforeANormModuleThatAgreesIsFound) {
  Result("Module.fc.Linear.forward.1000000000", false);
  Result("Module.fc.Linear.forward.0", true);
  Result("Module.norm.BatchNorm2d.forward.0", false);
  EXPECT_EQ(Find(), std::vector<uint32_t>{1});
}

TEST_F(WithoutInputs, AResultBeforeASoftmaxThatIsWrongIsNone) {
  Result("Functional.linear.1000000000.forward", false);
  Result("Functional.linear.0.forward", true);
  Result("Torch.softmax.0.forward", true);
  Result("Torch.softmax.1.forward", true);
  EXPECT_TRUE(Find().empty());
}

TEST_F(WithoutInputs, AResultOfTheFirstStepIsNone) {
  Result("Functional.linear.0.forward", true);
  Result("Torch.softmax.0.forward", false);
  EXPECT_TRUE(Find(false).empty());
  EXPECT_TRUE(Find(true).empty());
}

}  // namespace

}  // namespace plumbline::verdict::batch_parts_test
