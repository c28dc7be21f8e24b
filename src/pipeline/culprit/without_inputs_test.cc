#include "pipeline/culprit/without_inputs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

Item Sized(double size, Shape shape = {8}) {
  const double norm = size * (shape.size() == 1 ? 3 : 24);
  return TensorForTest({size, -size / 2, size / 9, norm}, std::move(shape));
}

class WithoutInputs : public testing::Test {
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
}  // namespace plumbline::pipeline
