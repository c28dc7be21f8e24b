#include "pipeline/culprit/product_precision.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kTf32 = 0x1p-11, kBFloat16 = 0x1p-8;

const Item kInput = TensorForTest({2, -2, 0.1, 8}, {8, 16});
const Item kWeight = TensorForTest({1, -1, 0.1, 4}, {4, 16});

Item Product(double error, const std::string& dtype = "torch.float32") {
  return TensorForTest({4 * (1 + error), -3, 0.5, 9}, {8, 4}, dtype);
}

// Products whose inputs are equal and whose results differ by these relative errors.
ComparisonForTest Products(const std::vector<double>& errors) {
  ComparisonForTest calls;
  for (size_t i = 0; i < errors.size(); ++i) {
    calls.Pair(fmt::format("Functional.linear.{}.forward", i)).In(kInput).In(kWeight);
    calls.Out(Product(errors[i]), Product(0));
  }
  return calls;
}

double RoundoffOf(const ComparisonForTest& calls, CompareMode mode = CompareMode::kStatistics) {
  measure::PairContext context;
  context.mode = mode;
  return FindProductRoundoffs(calls.get(), context).matrix;
}

TEST(ProductPrecision, NothingToSeeIsNone) {
  EXPECT_EQ(RoundoffOf(ComparisonForTest()), 0);
  EXPECT_EQ(RoundoffOf(Products({0, 0, 0})), 0);
  EXPECT_EQ(RoundoffOf(Products({1e-7, 5e-8})), 0);
}

TEST(ProductPrecision, ErrorOfAllProductsTells) {
  EXPECT_EQ(RoundoffOf(Products({1e-4, 2e-4, 5e-5})), kTf32);
  EXPECT_EQ(RoundoffOf(Products({1e-3, 5e-4, 9e-4})), kBFloat16);
}

TEST(ProductPrecision, FusedAttentionTellsToo) {
  ComparisonForTest calls;
  calls.Pair("Functional.multi_head_attention_forward.0.forward").In(kInput).In(kWeight);
  calls.Out(Product(2e-4), Product(0));
  EXPECT_EQ(RoundoffOf(calls), kTf32);
}

TEST(ProductPrecision, TooLargeAnErrorIsNoRounding) {
  EXPECT_EQ(RoundoffOf(Products({1e-4, 2e-4, 0.5})), 0);
}

TEST(ProductPrecision, OneWrongAmongExactOnesIsAFault) {
  EXPECT_EQ(RoundoffOf(Products({0, 2e-4, 0, 0})), 0);
  EXPECT_EQ(RoundoffOf(Products({2e-4, 1e-4, 1e-4, 0})), kTf32);  // one is of small integers
}

TEST(ProductPrecision, ProductOfWrongInputsSaysNothing) {
  ComparisonForTest calls;
  calls.Pair("Functional.linear.0.forward");
  calls.Row(ItemRole::kInput, TensorForTest({2.1, -2, 0.1, 8}, {8, 16}), kInput).In(kWeight);
  calls.Out(Product(2e-4), Product(0));
  EXPECT_EQ(RoundoffOf(calls), 0);
}

TEST(ProductPrecision, NaNInfinityAndZerosAreNoRounding) {
  for (const StatisticsForTest& statistics :
       {StatisticsForTest{kNaN, kNaN, kNaN, kNaN}, StatisticsForTest{kInf, -3, kInf, kInf},
        StatisticsForTest{0, 0, 0, 0}}) {
    ComparisonForTest calls;
    calls.Pair("Functional.linear.0.forward").In(kInput).In(kWeight);
    calls.Out(TensorForTest(statistics, {8, 4}), Product(0));
    EXPECT_EQ(RoundoffOf(calls), 0) << statistics[0];
  }
}

TEST(ProductPrecision, EmptyTensorsAreNoProduct) {
  const Item empty = TensorForTest({0, 0, 0, 0}, {0, 16});
  ComparisonForTest calls;
  calls.Pair("Functional.linear.0.forward").In(empty).In(kWeight);
  calls.Out(TensorForTest({0, 0, 0, 0}, {0, 4}), TensorForTest({0, 0, 0, 0}, {0, 4}));
  EXPECT_EQ(RoundoffOf(calls), 0);
}

TEST(ProductPrecision, OtherCallsAndTypesDoNotCount) {
  ComparisonForTest calls;
  calls.Pair("Torch.exp.0.forward").In(kInput).Out(Product(2e-4), Product(0));
  calls.Pair("Functional.linear.0.backward").In(kInput).Out(Product(2e-4), Product(0));
  calls.Pair("Functional.linear.0.forward").In(kInput).In(kWeight);
  calls.Out(Product(2e-4, "torch.bfloat16"), Product(0, "torch.bfloat16"));
  calls.Target("Functional.linear.1.forward").TargetOut(Product(2e-4));
  EXPECT_EQ(RoundoffOf(calls), 0);
}

// The same products with tensors: relative errors of the whole, and of the worst element.
double RoundoffWithTensors(double error, double max_abs_error) {
  ComparisonForTest calls(CompareMode::kTensor);
  for (int i = 0; i < 3; ++i) {
    calls.Pair(fmt::format("Functional.linear.{}.forward", i));
    for (const Item& input : {kInput, kWeight}) {
      calls.In(input);
      TensorMetrics equal;
      equal.relative_l2 = 0.0;
      equal.max_abs_error = 0.0;
      equal.element_count = 64;
      calls.last_row().tensor = equal;
    }
    calls.Out(Product(error), Product(0));
    TensorMetrics metrics;
    metrics.relative_l2 = error;
    metrics.max_abs_error = max_abs_error;
    metrics.cosine = 1.0;
    metrics.element_count = 32;
    metrics.mismatch_count = 32;
    calls.last_row().tensor = metrics;
  }
  return RoundoffOf(calls, CompareMode::kTensor);
}

TEST(ProductPrecision, ErrorMustBeSpreadOverTheElements) {
  EXPECT_EQ(RoundoffWithTensors(3e-4, 1e-3), kTf32);
  EXPECT_EQ(RoundoffWithTensors(3e-4, 9), 0);
}

TEST(ProductPrecision, DigestsAndSavedValuesTellNothing) {
  ComparisonForTest digests(CompareMode::kDigest);
  digests.Pair("Functional.linear.0.forward").In(kInput).In(kWeight);
  digests.Out(Product(2e-4), Product(0));
  EXPECT_EQ(RoundoffOf(digests, CompareMode::kDigest), 0);
  Comparison saves = Products({1e-4, 2e-4}).get();
  saves.of_saves = true;
  EXPECT_EQ(FindProductRoundoffs(saves, {}).largest(), 0);
}

}  // namespace
}  // namespace plumbline::pipeline
