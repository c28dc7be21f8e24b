#include "pipeline/culprit/type_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
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
}  // namespace plumbline::pipeline
