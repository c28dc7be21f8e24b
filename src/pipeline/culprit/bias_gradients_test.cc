// Gradients of biases that no backward call returns, as an optimizer reads them.

#include "pipeline/culprit/bias_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
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
}  // namespace plumbline
