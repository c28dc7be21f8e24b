#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "formats/pytorch/torch_pt.h"
#include "verdict/comparison_for_test.h"
#include "verdict/precision_choice.h"
#include "verdict/propagated_error.h"
#include "verdict/rightly_different.h"

namespace plumbline::noise_test {

// Gradients of biases that no backward call returns, as an optimizer reads them.

namespace {

struct Numbers {
  double max = 0, min = 0, mean = 0, norm = 0;

  [[nodiscard]] Numbers Times(double factor) const {
    return {max * factor, min * factor, mean * factor, norm * factor};
  }
};

std::string Tensor(const Numbers& numbers, const std::string& shape = "[16]") {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false}})",
                     shape, numbers.max, numbers.min, numbers.mean, numbers.norm);
}

constexpr Numbers kValue{2, -2, 0.1, 40};
constexpr Numbers kOtherWeight{1.9, -2, 0.09, 39};
constexpr Numbers kBias{0.25, -0.2, 0.03, 0.6};
constexpr Numbers kTerms{3e-3, -3e-3, 1e-13, 0.015};  // of 80 rows; rounding of a sum: 2e-10
constexpr Numbers kRounding{6e-10, -14e-10, -2e-10, 2.1e-9};
constexpr Numbers kOtherRounding{11e-10, -5e-10, 1e-10, 1.9e-9};

struct Parameters {
  Numbers weight = kValue, bias = kBias;
};

class BiasGradientsTest : public TwoDumpsTest {
 protected:
  // `linear` of the part of a batch that begins at row 0, as recorded without the bias's gradient.
  static void AddLinear(DumpForTest& side, int number, int rows, const Numbers& terms = kTerms,
                        const Parameters& of = {}) {
    const std::string shape = fmt::format("[{}, 10, 16]", rows);
    const std::string flat = fmt::format("[{}, 16]", rows * 10);
    side.Add(fmt::format("Functional.linear.{}.forward", number),
             Tensor(kValue, shape) + "," + Tensor(of.weight, "[16, 16]") + "," + Tensor(of.bias),
             Tensor(kValue, shape));
    side.Add(fmt::format("Functional.linear.{}.backward", number), Tensor(terms, shape),
             Tensor(terms, flat));
  }
  // A moment that an optimizer keeps of the gradient, and the weight that it moves.
  static void AddStep(DumpForTest& side, const Numbers& gradient, double weight = 0.6) {
    side.Add("Tensor.lerp_.0.forward", Tensor({}) + "," + Tensor(gradient),
             Tensor(gradient.Times(0.1)));
    side.Add("Tensor.add_.0.forward", Tensor(kBias) + "," + Tensor(gradient.Times(0.1)),
             Tensor({0.25, -0.2, 0.03, weight}));
  }
  void Record(const Numbers& target, const Numbers& golden) {
    for (DumpForTest* side : {&target_, &golden_}) {
      AddLinear(*side, 0, 8);
      AddStep(*side, side == &target_ ? target : golden);
    }
  }
};

TEST_F(BiasGradientsTest, WhatIsLeftOfTermsThatCancelIsRounding) {
  Record(kOtherRounding, kRounding);
  EXPECT_EQ(Named(), "");
}

TEST_F(BiasGradientsTest, ZeroIsSuchARounding) {
  Record(Numbers{}, kRounding);
  EXPECT_EQ(Named(), "");
}

TEST_F(BiasGradientsTest, MoreThanTheTermsRoundIsNamed) {
  Record(kOtherRounding.Times(1e3), kRounding);
  EXPECT_EQ(Named(), "Tensor.lerp_.0.forward");
}

TEST_F(BiasGradientsTest, AMultipleIsNoRounding) {
  Record(kRounding.Times(3), kRounding);
  EXPECT_EQ(Named(), "Tensor.lerp_.0.forward");
}

TEST_F(BiasGradientsTest, ASumThatDoesNotCancelIsJudged) {
  const Numbers terms{3e-3, -3e-3, 1e-3, 0.04};
  const Numbers gradient{0.1, 0.06, 0.08, 0.33};  // 16 of mean 0.08 for 1280 of mean 1e-3
  for (DumpForTest* side : {&target_, &golden_}) {
    AddLinear(*side, 0, 8, terms);
    AddStep(*side, side == &target_ ? gradient.Times(1.001) : gradient);
  }
  EXPECT_EQ(Named(), "Tensor.lerp_.0.forward");
}

TEST_F(BiasGradientsTest, OfNoRecordedTermsNothingIsKnown) {
  for (DumpForTest* side : {&target_, &golden_}) {
    AddStep(*side, side == &target_ ? kOtherRounding : kRounding);
  }
  EXPECT_EQ(Named(), "Tensor.lerp_.0.forward");
}

TEST_F(BiasGradientsTest, RoundingDoesNotExcuseItsNeighbours) {
  Record(kOtherRounding, kRounding);
  const Numbers gradient{0.1, -0.1, 0.02, 0.3};
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Tensor.lerp_.1.forward",
              Tensor({}) + "," + Tensor(gradient.Times(side == &target_ ? 1.001 : 1)),
              Tensor(gradient.Times(0.1)));
  }
  EXPECT_EQ(Named(), "Tensor.lerp_.1.forward");
}

TEST_F(BiasGradientsTest, BiasesThatAreAllZeroAreToldApartByTheirWeights) {
  for (DumpForTest* side : {&target_, &golden_}) {
    AddLinear(*side, 0, 8, {3e-3, -3e-3, 1e-3, 0.04}, {kValue, {}});
    AddLinear(*side, 1, 8, kTerms, {kOtherWeight, {}});
    AddStep(*side, side == &target_ ? kOtherRounding : kRounding);
  }
  EXPECT_EQ(Named(), "");
}

TEST_F(BiasGradientsTest, PartsOfABatchAddUp) {
  AddLinear(golden_, 0, 8);
  AddLinear(target_, 0, 4, {3e-3, -3e-3, 2e-6, 0.011});
  AddLinear(target_, 1, 4, {3e-3, -3e-3, -2e-6, 0.011});
  AddStep(target_, kOtherRounding);
  AddStep(golden_, kRounding);
  const Comparison comparison = Compare();
  const auto read = std::ranges::find_if(comparison.rows, [](const ComparedRow& row) {
    return row.item().name.view() == "Tensor.lerp_.0.forward.input.1";
  });
  ASSERT_NE(read, comparison.rows.end());
  EXPECT_EQ(read->verdict, Verdict::kWithinNoise);
}

class ModuleGradientsTest : public BiasGradientsTest {
 protected:
  // A module as recorded without the calls in it, and the gradient of its bias.
  static void AddModule(DumpForTest& side, const Numbers& gradient) {
    side.AddEntry(
        fmt::format(R"("Module.fc.Linear.forward.0": {{"input_args": [{}], "input_kwargs": {{}}, )"
                    R"("parameters": {{"weight": {}, "bias": {}}}, "output": [{}]}})",
                    Tensor(kValue, "[80, 16]"), Tensor(kValue, "[16, 16]"), Tensor(kBias),
                    Tensor(kValue, "[80, 16]")));
    side.AddEntry(
        fmt::format(R"("Module.fc.Linear.parameters_grad": {{"bias": [{}]}})", Tensor(gradient)));
    side.AddEntry(fmt::format(R"("Module.fc.Linear.backward.0": {{"input": [{}], "output": [{}]}})",
                              Tensor(kTerms, "[80, 16]"), Tensor(kTerms, "[80, 16]")));
  }
  void RecordModules(const Numbers& target) {
    AddModule(target_, target);
    AddModule(golden_, kRounding);
  }
};

TEST_F(ModuleGradientsTest, WhatIsLeftOfTermsThatCancelIsRounding) {
  RecordModules(kOtherRounding);
  EXPECT_EQ(Named(), "");
}

TEST_F(ModuleGradientsTest, MoreThanTheTermsRoundIsNamed) {
  RecordModules(kOtherRounding.Times(1e3));
  EXPECT_EQ(Named(), "Module.fc.Linear.parameters_grad");
}

TEST_F(ModuleGradientsTest, AMultipleIsNoRounding) {
  RecordModules(kRounding.Times(3));
  EXPECT_EQ(Named(), "Module.fc.Linear.parameters_grad");
}

std::string Truths(bool any, bool all) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.bool", "shape": [16], )"
                     R"("Max": {}, "Min": {}, "Mean": null, "Norm": null, )"
                     R"("requires_grad": false}})",
                     any, all);
}

TEST_F(BiasGradientsTest, TruthValuesAndMaskedWritesOfRoundingMayBeAny) {
  const auto record = [&](DumpForTest& side, const Numbers& gradient, bool any, double written) {
    AddLinear(side, 0, 8);
    side.Add("Tensor.gt.0.forward", Tensor(gradient) + "," + ScalarJson("int", "0"),
             Truths(any, false));
    side.Add("Tensor.__setitem__.0.forward",
             Tensor(gradient) + "," + Truths(any, false) + "," + ScalarJson("float", "0.5"),
             "null");
    const double norm = any ? 2 * written : gradient.norm;
    const Numbers left{written, -5e-10, written / 4, norm};
    side.Add("Tensor.abs.0.forward", Tensor(left), Tensor({norm / 2, 1e-12, norm / 4, norm}));
  };
  record(target_, kOtherRounding, true, 0.5);
  record(golden_, {-1e-10, -5e-10, -2e-10, 1e-9}, false, -1e-10);
  EXPECT_EQ(Named(), "");
}

TEST_F(BiasGradientsTest, WhatAMaskedWriteCannotLeaveIsNamed) {
  for (DumpForTest* side : {&target_, &golden_}) {
    const bool is_target = side == &target_;
    AddLinear(*side, 0, 8);
    side->Add("Tensor.__setitem__.0.forward",
              Tensor(is_target ? kOtherRounding : kRounding) + "," + Truths(true, false) + "," +
                  ScalarJson("float", "0.5"),
              "null");
    const double most = is_target ? 0.7 : 0.5;  // more than what was written
    side->Add("Tensor.abs.0.forward", Tensor({most, -5e-10, 0.25, 1.2}),
              Tensor({most, 1e-12, 0.25, 1.2}));
  }
  EXPECT_EQ(Named(), "Tensor.abs.0.forward");
}

// A third of the elements of a joint bias is rounding; its sign is not told.
TEST_F(BiasGradientsTest, SignsOfSmallElementsMayDifferWithStatistics) {
  const Numbers gradient{0.1, -0.09, 0.004, 0.2};
  const Numbers terms{3e-3, -3e-3, 0.064 / 1280, 0.05};
  for (DumpForTest* side : {&target_, &golden_}) {
    const double off = side == &target_ ? 1 + 1e-7 : 1;
    const double mean = side == &target_ ? 0.25 : 0.125;
    AddLinear(*side, 0, 8, terms);
    side->Add("Tensor.sign_.0.forward", Tensor(gradient.Times(off)), Tensor({1, -1, mean, 4}));
  }
  EXPECT_EQ(Named(), "");
}

TEST_F(BiasGradientsTest, SignsOfLargeElementsAreJudged) {
  const Numbers gradient{0.1, -0.1, 0.05, 0.4};  // all 16 as large as the largest
  const Numbers terms{3e-3, -3e-3, 0.8 / 1280, 0.05};
  for (DumpForTest* side : {&target_, &golden_}) {
    const double off = side == &target_ ? 1 + 1e-7 : 1;
    const double mean = side == &target_ ? 0.25 : 0.5;
    AddLinear(*side, 0, 8, terms);
    side->Add("Tensor.sign_.0.forward", Tensor(gradient.Times(off)), Tensor({1, -1, mean, 4}));
  }
  EXPECT_EQ(Named(), "Tensor.sign_.0.forward");
}

}  // namespace

}  // namespace plumbline::noise_test

namespace plumbline::verdict::noise_test {

namespace {

const std::string kWide = "torch.float64";
const std::string kNarrow = "torch.bfloat16";

Item Values(const std::string& dtype = "torch.float32") {
  return TensorForTest({1, -1, 0, 2}, {4, 4}, dtype);
}

Item TypeNamed(const std::string& name) {
  Item item;
  item.statistics[0] = Text(name);
  return item;
}

TEST(TypeChoice, MostCallsInAnotherTypeAreAChoice) {
  ComparisonForTest comparison;
  comparison.Target("Torch.exp.0.forward", "dtype-differs").TargetOut(Values(kWide));
  comparison.Golden("Torch.exp.0.forward", "dtype-differs").GoldenOut(Values());
  EXPECT_TRUE(TypeChoiceOf(comparison.get()).is_other);
  comparison.Pair("Torch.sin.0.forward").Out(Values());
  EXPECT_FALSE(TypeChoiceOf(comparison.get()).is_other);
}

TEST(TypeChoice, OtherFormsAreNone) {
  ComparisonForTest comparison;
  comparison.Target("Torch.exp.0.forward", "shape-differs").TargetOut(Values(kWide));
  EXPECT_FALSE(TypeChoiceOf(comparison.get()).is_other);
  EXPECT_FALSE(TypeChoiceOf(ComparisonForTest().get()).is_other);
  EXPECT_FALSE(TypeChoiceOf(ComparisonForTest().get()).is_narrower);
}

TEST(TypeChoice, ManyNarrowerValuesAreAChoice) {
  ComparisonForTest comparison;
  comparison.Pair("Torch.exp.0.forward").Out(Values(kNarrow), Values());
  EXPECT_TRUE(TypeChoiceOf(comparison.get()).is_narrower);
  for (int i = 0; i < 4; ++i) comparison.Out(Values());
  EXPECT_FALSE(TypeChoiceOf(comparison.get()).is_narrower);
}

TEST(TypeChoice, TypesGivenAsArguments) {
  EXPECT_TRUE(IsNarrowerType(TypeNamed(kNarrow), TypeNamed("torch.float32")));
  EXPECT_FALSE(IsNarrowerType(TypeNamed("torch.float32"), TypeNamed(kNarrow)));
  EXPECT_FALSE(IsNarrowerType(TypeNamed("mean"), TypeNamed("torch.float32")));
  EXPECT_FALSE(IsNarrowerType(Item(), TypeNamed("torch.float32")));
}

// The call that starts the narrower values, of one that reads `read` and returns bfloat16.
std::optional<uint32_t> Start(const std::string& name, const std::string& read,
                              const std::string& before = "torch.float32") {
  ComparisonForTest comparison;
  comparison.Pair("Torch.exp.0.forward").Out(Values(before), Values());
  comparison.Pair(name)
      .Row(ItemRole::kInput, Values(read), Values())
      .Out(Values(kNarrow), Values());
  return TypeChoiceOf(comparison.get()).starts_at;
}

TEST(TypeChoice, StartsWhereACallComputesTheFirstNarrowerTensor) {
  EXPECT_EQ(Start("Functional.softmax.0.forward", "torch.float32"), 1u);
  EXPECT_FALSE(Start("Functional.softmax.0.forward", kNarrow));
  EXPECT_FALSE(Start("Tensor.to.0.forward", "torch.float32"));
  // What was narrower before it does not follow from it.
  EXPECT_FALSE(Start("Functional.softmax.0.forward", "torch.float32", kNarrow));
}

}  // namespace

}  // namespace plumbline::verdict::noise_test

namespace plumbline::noise_test {

// What follows from a rounding that noise alone flipped, and what does not.

namespace {

using Values = std::vector<float>;

Values Times(Values values, float factor) {
  for (float& each : values) each *= factor;
  return values;
}

// Both sides read x, which differs by noise, and round it: 0.5 is 0, a little more is 1.
class DiscreteFlipTest : public TwoDumpsTest {
 protected:
  void SetUp() override {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool is_target = side == &target_;
      const Values x = {is_target ? 0.50000006F : 0.5F, 1.25F, 2.25F, 3.25F};
      Add(*side, "Torch.mul.0.forward", {0.5F, 1.25F, 2.25F, 3.25F}, x);
      Add(*side, "Torch.round.0.forward", x, {is_target ? 1.0F : 0.0F, 1, 2, 3});
    }
  }
  void Add(DumpForTest& side, const std::string& name, const Values& input, const Values& output,
           const std::string& parent = {}) {
    side.Add(name, Tensor(side, name + ".input.0", input), Tensor(side, name + ".output.0", output),
             parent);
  }
  // A call of both sides that reads these and doubles them.
  void Read(const Values& target, const Values& golden) {
    Add(target_, "Torch.mul.1.forward", target, Times(target, 2));
    Add(golden_, "Torch.mul.1.forward", golden, Times(golden, 2));
  }
  Comparison CompareTensors() {
    Result<Comparison> result = CompareRuns(target_.Write("tensor"), golden_.Write("tensor"));
    EXPECT_TRUE(result);
    return result ? std::move(*result) : Comparison();
  }
  std::string NamedWithTensors() {
    const Comparison comparison = CompareTensors();
    return comparison.first_wrong_call ? comparison.first_wrong_call->name : "";
  }
  void ExpectFollows(size_t row) {
    const Comparison comparison = CompareTensors();
    EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
    EXPECT_EQ(comparison.rows[3].reason, "flip");
    EXPECT_EQ(comparison.rows[row].reason, "follows-flip");
    EXPECT_EQ(comparison.rows[row].verdict, Verdict::kNotComparable);
    EXPECT_GT(comparison.counts.missing_values, 0U);
  }

  std::string Tensor(const DumpForTest& side, const std::string& name, const Values& values,
                     bool is_trained = false) {
    const std::string files =
        directory_.Path(&side == &target_ ? "target" : "golden") + "/dump_tensor_data/";
    EXPECT_TRUE(MakeDirectories(files));
    const std::span<const std::byte> data = std::as_bytes(std::span(values));
    const int64_t sizes[] = {static_cast<int64_t>(values.size())};
    const torch_pt::Frame frame =
        torch_pt::MakeFrame(DType::kFloat32, sizes, data.size(), Crc32(data));
    const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
    EXPECT_TRUE(WriteFileAtomically(files + name + ".pt", frame.head + body + frame.tail, false));
    double sum = 0, squares = 0;
    for (const double each : values) {
      sum += each;
      squares += each * each;
    }
    return fmt::format(
        R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [{}], "Max": {}, )"
        R"("Min": {}, "Mean": {}, "Norm": {}, "requires_grad": {}, "data_name": "{}.pt"}})",
        values.size(), *std::ranges::max_element(values), *std::ranges::min_element(values),
        sum / static_cast<double>(values.size()), std::sqrt(squares), is_trained, name);
  }
};

// Rows: two of each call.
constexpr size_t kRead = 4;

TEST_F(DiscreteFlipTest, RepeatsThatNobodyRecordedFollow) {
  Read({1, 1, 2, 3, 1, 1, 2, 3}, {0, 1, 2, 3, 0, 1, 2, 3});
  ExpectFollows(kRead);
}

TEST_F(DiscreteFlipTest, PartsFollow) {
  Read({1, 1}, {0, 1});
  ExpectFollows(kRead);
}

TEST_F(DiscreteFlipTest, OtherElementsBesideTheFlipAreNamed) {
  Read({1, 1, 2, 3, 1, 1, 2, 2}, {0, 1, 2, 3, 0, 1, 2, 3});
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.1.forward");
}

TEST_F(DiscreteFlipTest, SoIsTheFlipAtMorePlaces) {
  Read({1, 1, 1, 1, 1, 1, 2, 3}, {0, 1, 0, 1, 0, 1, 2, 3});
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.1.forward");
}

TEST_F(DiscreteFlipTest, AndAPartThatIsWrong) {
  Read({2, 1}, {1, 1});
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.1.forward");
}

// What a module around the rounding returns, behind an addition inside of it.
class FlipInsideTest : public DiscreteFlipTest {
 protected:
  static constexpr size_t kSum = 4, kResult = 6;
  static inline const Values kTarget = {3, 3, 4, 5}, kGolden = {2, 3, 4, 5};

  void Record(const Values& target, const Values& golden) {
    const std::string module = "Module.m.M.forward.0";
    const Values before = {0.5F, 1.25F, 2.25F, 3.25F};
    Add(target_, "Torch.add.0.forward", {1, 1, 2, 3}, kTarget, module);
    Add(golden_, "Torch.add.0.forward", {0, 1, 2, 3}, kGolden, module);
    Add(target_, module, before, target);
    Add(golden_, module, before, golden);
  }
};

TEST_F(FlipInsideTest, ItsResultFollows) {
  Record(kTarget, kGolden);
  ExpectFollows(kSum + 1);
  ExpectFollows(kResult + 1);
}

TEST_F(FlipInsideTest, SoDoesWhatNoCallInsideReturned) {
  Record({6, 1.5F, 2, 2.5F}, {4, 1.5F, 2, 2.5F});
  ExpectFollows(kResult + 1);
}

TEST_F(FlipInsideTest, AnotherResultThanThatOfTheCallInsideIsNamed) {
  Record(Times(kTarget, 2), kGolden);
  EXPECT_EQ(NamedWithTensors(), "Module.m.M.forward.0");
}

TEST_F(FlipInsideTest, AWrongCallInsideIsNamed) {
  Record(kTarget, kGolden);
  Add(target_, "Torch.exp.0.forward", {1, 2}, {2, 7}, "Module.n.M.forward.0");
  Add(golden_, "Torch.exp.0.forward", {1, 2}, {2, 3}, "Module.n.M.forward.0");
  Add(target_, "Module.n.M.forward.0", {1, 2}, {2, 7});
  Add(golden_, "Module.n.M.forward.0", {1, 2}, {2, 3});
  EXPECT_EQ(NamedWithTensors(), "Torch.exp.0.forward");
}

// No flip is inside of it, whatever was flipped before.
TEST_F(FlipInsideTest, AModuleBehindItIsNamed) {
  Record(kTarget, kGolden);
  Add(target_, "Module.n.M.forward.0", {1, 2}, {2, 7});
  Add(golden_, "Module.n.M.forward.0", {1, 2}, {2, 3});
  EXPECT_EQ(NamedWithTensors(), "Module.n.M.forward.0");
}

// A parameter that multiplies what was rounded, its gradient, and what a step left of it.
class FlipBeforeStepTest : public DiscreteFlipTest {
 protected:
  static constexpr size_t kLeft = 11;

  // `rounded`: what the parameter multiplies.
  void Record(DumpForTest& side, const Values& rounded, bool has_gradient = true) {
    const std::string name = "Torch.mul.1.forward", gradient = "Torch.mul.1.backward";
    const Values parameter = {0.5F, 0.75F, 1, 1.5F};
    Values product = rounded, left = parameter;
    for (size_t i = 0; i < parameter.size(); ++i) {
      product[i] *= parameter[i];
      left[i] -= rounded[i] / 8;
    }
    Multiply(side, name, rounded, parameter, product);
    if (has_gradient) {
      side.AddEntry(fmt::format(R"("{}": {{"input": [{}], "output": [null, {}]}})", gradient,
                                Tensor(side, gradient + ".input.0", {1, 1, 1, 1}),
                                Tensor(side, gradient + ".output.1", rounded)));
    }
    Multiply(side, "Torch.mul.2.forward", {1, 1, 1, 1}, left, left);
  }

 private:
  void Multiply(DumpForTest& side, const std::string& name, const Values& by,
                const Values& parameter, const Values& product) {
    side.Add(name,
             Tensor(side, name + ".input.0", by) + "," +
                 Tensor(side, name + ".input.1", parameter, true),
             Tensor(side, name + ".output.0", product));
  }
};

TEST_F(FlipBeforeStepTest, WhatTheStepLeftFollows) {
  Record(target_, {1, 1, 2, 3});
  Record(golden_, {0, 1, 2, 3});
  ExpectFollows(kLeft);
}

TEST_F(FlipBeforeStepTest, WithoutAGradientItIsNamed) {
  Record(target_, {1, 1, 2, 3}, false);
  Record(golden_, {0, 1, 2, 3}, false);
  EXPECT_EQ(NamedWithTensors(), "Torch.mul.2.forward");
}

}  // namespace

// Memory whose contents a call writes over is never judged; what it leaves in place is.

namespace {

std::string Whole(int64_t max, int64_t min, double mean, double norm, const std::string& shape) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.int64", "shape": {}, "Max": {}, )"
                     R"("Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false}})",
                     shape, max, min, mean, norm);
}

// 0 to 7 in some order.
const std::string kEach = Whole(7, 0, 3.5, std::sqrt(140.0), "[8]");
const std::string kSource = TensorJson(2, -2, 3, "[8, 2]");
const std::string kAllPlaces = R"({"type": "slice", "value": [null, null, null]})";

class OverwrittenTest : public TwoDumpsTest {
 protected:
  // A call that writes into other memory on each side. `more`: its other inputs.
  void Write(const std::string& api, const std::string& more, const std::string& results = "null") {
    int side_number = 1;
    for (DumpForTest* side : {&target_, &golden_}) {
      const double garbage = std::pow(1e3, side_number++);
      side->Add(api + ".0.forward", TensorJson(garbage, -garbage, garbage, "[8, 2]") + more,
                results);
    }
  }
  void ExpectOverwritten() {
    const Comparison comparison = Compare();
    EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
    EXPECT_EQ(comparison.rows[0].reason, "overwritten");
    EXPECT_EQ(comparison.rows[0].verdict, Verdict::kNotComparable);
    EXPECT_EQ(comparison.counts.missing_values, 0U);
  }
};

TEST_F(OverwrittenTest, MemoryThatIsCopiedOver) {
  Write("Tensor.copy_", "," + kSource, kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, MemoryThatIsFilled) {
  Write("Tensor.fill_", "," + ScalarJson("float", "0.5"), TensorJson(0.5, 0.5, 2, "[8, 2]"));
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, PlacesThatAreEachNamedOnce) {
  Write("Tensor.__setitem__", "," + kEach + "," + kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, PlacesOfADimensionThatAreEachNamedOnce) {
  Write("Tensor.index_copy_", "," + ScalarJson("int", "-2") + "," + kEach + "," + kSource, kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, SlicesOfAllPlaces) {
  const std::string wide = R"({"type": "slice", "value": [0, 2, 1]})";
  Write("Tensor.__setitem__", ",[" + kAllPlaces + "," + wide + "]," + kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, AnEllipsisAndOneDimension) {
  const std::string dots = R"({"type": "ellipsis", "value": "..."})";
  Write("Tensor.__setitem__", ",[" + dots + "," + kAllPlaces + "]," + kSource);
  ExpectOverwritten();
}

TEST_F(OverwrittenTest, WhatPartsOfAWriteLeaveIsJudged) {
  const std::string half = R"({"type": "slice", "value": [4, null, null]})";
  Write("Tensor.__setitem__", "," + half + "," + kSource);
  EXPECT_EQ(Named(), "Tensor.__setitem__.0.forward");
}

TEST_F(OverwrittenTest, WhatDoubledPlacesLeaveIsJudged) {
  Write("Tensor.__setitem__", "," + Whole(7, 0, 3, 11, "[8]") + "," + kSource);
  EXPECT_EQ(Named(), "Tensor.__setitem__.0.forward");
}

TEST_F(OverwrittenTest, WhatACallAddsToIsJudged) {
  Write("Tensor.add_", "," + kSource, kSource);
  EXPECT_EQ(Named(), "Tensor.add_.0.forward");
}

// Memory that both sides fill by writes into its halves, or by calls that nobody recorded.
class FilledInPartsTest : public OverwrittenTest {
 protected:
  // Reads what is in the memory on each side; `size` of both: it agrees.
  void Read(const std::string& name, double of_target, double of_golden) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const double size = side == &target_ ? of_target : of_golden;
      side->Add(name, TensorJson(size, -size, size, "[8, 2]"), TensorJson(1, -1, 1, "[8]"));
    }
  }
  void WriteHalf() {
    Write("Tensor.__setitem__",
          R"(,{"type": "slice", "value": [4, null, null]},)" + TensorJson(2, -2, 3, "[4, 2]"));
  }
  void Gather(const std::string& shape) {
    const std::string received = TensorJson(3, -3, 3, shape), own = TensorJson(1, -1, 1, "[2, 2]");
    for (DumpForTest* side : {&target_, &golden_}) {
      side->Add("Distributed.all_gather.0.forward", "null, " + own, received + "," + own);
    }
  }
  // A view of half of the memory, as long as nobody wrote it.
  void View() {
    int side_number = 1;
    for (DumpForTest* side : {&target_, &golden_}) {
      const double garbage = std::pow(1e3, side_number++);
      side->Add("Tensor.narrow.0.forward", TensorJson(garbage, -garbage, garbage, "[8, 2]"),
                TensorJson(garbage, -garbage, garbage / 2, "[4, 2]"));
    }
  }
};

TEST_F(FilledInPartsTest, WhatAWriteLeavesForOthers) {
  WriteHalf();
  Read("Torch.sum.0.forward", 2, 2);
  ExpectOverwritten();
}

// FSDP gathers into memory, or into views of it, that nobody wrote.
TEST_F(FilledInPartsTest, AViewOfWhatACommunicationReceives) {
  View();
  Gather("[8, 2]");
  ExpectOverwritten();
}

TEST_F(FilledInPartsTest, AViewIntoWhichACommunicationReceives) {
  View();
  Gather("[4, 2]");
  ExpectOverwritten();
}

TEST_F(FilledInPartsTest, AViewOfWhatIsReceivedOtherwise) {
  View();
  for (DumpForTest* side : {&target_, &golden_}) {
    const double size = side == &target_ ? 3 : 5;
    side->Add("Distributed.all_gather.0.forward", "null", TensorJson(size, -size, size, "[8, 2]"));
  }
  EXPECT_EQ(Named(), "Tensor.narrow.0.forward");
}

TEST_F(FilledInPartsTest, AViewThatNobodyReads) {
  View();
  Read("Torch.sum.0.forward", 2, 2);
  ExpectOverwritten();
}

TEST_F(FilledInPartsTest, NothingIsExcusedWhereNothingReadsTheWhole) {
  View();
  EXPECT_EQ(Named(), "Tensor.narrow.0.forward");
}

TEST_F(FilledInPartsTest, NorWhereTheWholeDiffers) {
  WriteHalf();
  Read("Torch.sum.0.forward", 2, 3);
  EXPECT_EQ(Named(), "Tensor.__setitem__.0.forward");
}

TEST_F(FilledInPartsTest, NorWhereACallReadsTheMemoryBefore) {
  WriteHalf();
  Read("Torch.sum.0.forward", 1e3, 1e6);
  Read("Torch.sum.1.forward", 2, 2);
  EXPECT_EQ(Named(), "Tensor.__setitem__.0.forward");
}

TEST_F(FilledInPartsTest, NorByWhatACallReturnedBefore) {
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Torch.neg.0.forward", TensorJson(4, -4, 4, "[8, 2]"),
              TensorJson(2, -2, 2, "[8, 2]"));
  }
  View();
  Read("Torch.sum.0.forward", 2, 2);
  EXPECT_EQ(Named(), "Tensor.narrow.0.forward");
}

// A buffer that nobody wrote, into parts of which calls that nobody recorded copy: DeepSpeed's.
class BucketTest : public OverwrittenTest {
 protected:
  static std::string Sized(double size, const std::string& shape) {
    return TensorJson(size, -size, size, shape);
  }
  // `narrow` number `n` of the buffer: what else is in it differs in any case.
  void Narrow(int n, int begin, int length, double of_target, double of_golden) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const bool is_target = side == &target_;
      const double rest = (is_target ? 1e3 : 1e6) + n;
      side->Add(fmt::format("Tensor.narrow.{}.forward", n),
                fmt::format("{},{},{},{}", Sized(rest, "[16]"), ScalarJson("int", "0"),
                            ScalarJson("int", std::to_string(begin)),
                            ScalarJson("int", std::to_string(length))),
                Sized(is_target ? of_target : of_golden, fmt::format("[{}]", length)));
    }
  }
  void Read(const std::string& name, const std::string& shape, double of_target, double of_golden) {
    for (DumpForTest* side : {&target_, &golden_}) {
      side->Add(name, Sized(side == &target_ ? of_target : of_golden, shape), Sized(1, "[8]"));
    }
  }
  // Two places before they are filled.
  void Fill() {
    Narrow(0, 0, 4, 11, 12);
    Narrow(1, 4, 4, 13, 14);
  }
};

TEST_F(BucketTest, PlacesThatAgreeWhenTheyAreTakenTogether) {
  Fill();
  Narrow(2, 0, 8, 3, 3);
  Read("Torch.sum.0.forward", "[8]", 3, 3);
  ExpectOverwritten();
}

TEST_F(BucketTest, AWrongPlaceIsNamed) {
  Fill();
  Narrow(2, 0, 8, 5, 3);
  Read("Torch.sum.0.forward", "[8]", 5, 3);
  EXPECT_EQ(Named(), "Tensor.narrow.0.forward");
}

TEST_F(BucketTest, OfTwoPlacesTheWrongOneIsNamed) {
  Fill();
  Narrow(2, 0, 4, 3, 3);
  Narrow(3, 4, 4, 5, 2);
  Read("Torch.sum.0.forward", "[4]", 5, 2);
  EXPECT_EQ(Named(), "Tensor.narrow.1.forward");
}

TEST_F(BucketTest, WhatIsReadBeforeItIsFilledIsNamed) {
  Fill();
  Read("Torch.sum.0.forward", "[4]", 11, 12);
  Narrow(2, 0, 8, 3, 3);
  EXPECT_EQ(Named(), "Tensor.narrow.0.forward");
}

TEST_F(BucketTest, NothingIsExcusedByAPlaceBeside) {
  Fill();
  Narrow(2, 0, 4, 3, 3);
  EXPECT_EQ(Named(), "Tensor.narrow.1.forward");
}

TEST_F(BucketTest, APlaceThatIsReadByItsForm) {
  Narrow(0, 0, 4, 11, 12);
  Read("Torch.sum.0.forward", "[4]", 3, 3);
  ExpectOverwritten();
}

TEST_F(BucketTest, APlaceThatIsReadAndWrongIsNamed) {
  Narrow(0, 0, 4, 11, 12);
  Read("Torch.sum.0.forward", "[4]", 5, 3);
  EXPECT_EQ(Named(), "Tensor.narrow.0.forward");
}

// Only where the memory of both sides is written over.
TEST_F(OverwrittenTest, AnotherResultIsNamedNevertheless) {
  int side_number = 1;
  for (DumpForTest* side : {&target_, &golden_}) {
    const double number = side_number++;
    side->Add("Tensor.copy_.0.forward",
              TensorJson(number, -number, number, "[8, 2]") + "," + kSource,
              TensorJson(2 * number, -2, 3 * number, "[8, 2]"));
  }
  EXPECT_EQ(Named(), "Tensor.copy_.0.forward");
}

}  // namespace

}  // namespace plumbline::noise_test
