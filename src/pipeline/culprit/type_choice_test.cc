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

}  // namespace
}  // namespace plumbline::pipeline
