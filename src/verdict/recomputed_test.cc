#include "verdict/recomputed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/memory/digest.h"
#include "formats/pytorch/torch_pt.h"
#include "verdict/call_rows.h"
#include "verdict/comparison_for_test.h"
#include "verdict/contents.h"
#include "verdict/precision_choice.h"

namespace plumbline::verdict::recomputed_test {

namespace {

Item Tensor(double max) {
  Item item;
  item.is_tensor = true;
  item.shape = Shape{4};
  item.statistics = {max, 0.0, max / 2, max};
  return item;
}

size_t HashOf(const Item& item) { return ContentKeyHash()(*KeyOf(item)); }

std::optional<uint32_t> Find(const ContentTable& known, const Item& item) {
  return known.Find(HashOf(item), [&] { return KeyOf(item); });
}

std::vector<ComparedRow> Rows(size_t count, double step) {
  std::vector<ComparedRow> rows(count);
  for (size_t i = 0; i < count; ++i) rows[i].golden = Tensor(1 + step * static_cast<double>(i));
  return rows;
}

TEST(ContentTable, EveryRowIsFoundByItsOwnContents) {
  const std::vector<ComparedRow> rows = Rows(5000, 0.25);  // grows several times
  ContentTable known(rows);
  EXPECT_FALSE(Find(known, *rows[0].golden));
  for (uint32_t i = 0; i < rows.size(); ++i) known.Remember(HashOf(*rows[i].golden), i);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(Find(known, *rows[i].golden), i);
  }
  EXPECT_FALSE(Find(known, Tensor(0.5)));
}

TEST(ContentTable, TheLastRowOfEqualContentsCounts) {
  const std::vector<ComparedRow> rows = Rows(3000, 0);
  ContentTable known(rows);
  for (uint32_t i = 0; i < rows.size(); ++i) known.Remember(HashOf(*rows[i].golden), i);
  EXPECT_EQ(Find(known, Tensor(1)), 2999U);
}

// NaN is content like any other: the same bits came from the same place.
TEST(ContentTable, ContentsAreBits) {
  std::vector<ComparedRow> rows(2);
  rows[0].golden = Tensor(std::nan(""));
  rows[1].golden = Tensor(-0.0);
  ContentTable known(rows);
  for (uint32_t i = 0; i < rows.size(); ++i) known.Remember(HashOf(*rows[i].golden), i);
  EXPECT_EQ(Find(known, Tensor(std::nan(""))), 0U);
  EXPECT_EQ(Find(known, Tensor(-0.0)), 1U);
  EXPECT_FALSE(Find(known, Tensor(0.0)));
}

}  // namespace

namespace {

constexpr std::string_view kName = "Functional.batch_norm.0.forward";

std::optional<Item> Named(const std::string& call, const std::string& name, Recorded value) {
  Item item;
  item.name = call + "." + name;
  item.statistics[0] = std::move(value);
  return item;
}

class CallArgumentsTest : public ::testing::Test {
 protected:
  CallArgumentsTest() { calls_.Pair(std::string(kName)); }
  void Read(const std::string& name, Recorded target, Recorded golden) {
    const std::string call(kName);
    calls_.Row(ItemRole::kInput, Named(call, name, std::move(target)),
               Named(call, name, std::move(golden)));
  }
  bool Is(size_t place, std::string_view keyword) {
    return IsArgument(calls_.last_row(), kName, place, keyword);
  }
  bool TakesOwn(bool of_target, std::string_view name = kName) {
    return TakesOwnStatistics(calls_.get().rows, name, of_target);
  }

  ComparisonForTest calls_;
};

TEST_F(CallArgumentsTest, PlacesAndKeywordsAreWhole) {
  Read("input.1", 1.0, 1.0);
  EXPECT_TRUE(Is(1, "mean"));
  EXPECT_FALSE(Is(11, "mean"));
  Read("input.11", 1.0, 1.0);
  EXPECT_FALSE(Is(1, "mean"));
  Read("input.1.0", 1.0, 1.0);
  EXPECT_FALSE(Is(1, "mean"));
  Read("kwargs.mean", 1.0, 1.0);
  EXPECT_TRUE(Is(1, "mean"));
  Read("kwargs.running_mean", 1.0, 1.0);
  EXPECT_FALSE(Is(1, "mean"));
  EXPECT_TRUE(Is(1, "running_mean"));
}

TEST_F(CallArgumentsTest, ResultsAreNone) {
  calls_.Row(ItemRole::kOutput, Named(std::string(kName), "input.0", 1.0), {});
  EXPECT_FALSE(Is(0, "input"));
}

TEST_F(CallArgumentsTest, EachSideHasItsOwn) {
  calls_.Row(ItemRole::kInput, Named(std::string(kName), "input.0", 1.0), {});
  Read("input.1", 2.0, 3.0);
  const auto& rows = calls_.get().rows;
  EXPECT_EQ(ArgumentOf(rows, kName, true, 0, "input"), &*rows[0].target);
  EXPECT_EQ(ArgumentOf(rows, kName, false, 0, "input"), nullptr);
  EXPECT_EQ(ArgumentOf(rows, kName, false, 1, "mean"), &*rows[1].golden);
  EXPECT_EQ(ArgumentOf(rows, kName, false, 2, "variance"), nullptr);
}

// As in a call that is paired with one of another name.
TEST_F(CallArgumentsTest, GoldenAloneHasItsOwnName) {
  calls_.Row(ItemRole::kInput, {}, Named("Functional.batch_norm.7.forward", "input.5", true));
  EXPECT_TRUE(TakesOwn(false));
}

TEST_F(CallArgumentsTest, TheFlagOfEitherFunction) {
  Read("kwargs.use_input_stats", true, false);
  EXPECT_TRUE(TakesOwn(true));
  EXPECT_FALSE(TakesOwn(false));
  Read("kwargs.training", false, true);
  EXPECT_FALSE(TakesOwn(true));
}

TEST_F(CallArgumentsTest, WithoutAFlagPyTorchDecides) {
  EXPECT_FALSE(TakesOwn(true));
  EXPECT_TRUE(TakesOwn(true, "Functional.instance_norm.0.forward"));
  Read("input.5", int64_t{1}, 0.1);  // numbers are no flag
  EXPECT_FALSE(TakesOwn(true));
}

}  // namespace

namespace {

using Values = std::vector<float>;

class RecomputedCallTest : public ::testing::Test {
 protected:
  // A tensor of one row, or of `rows`, in a file of its own.
  Item Tensor(const Values& values, int64_t rows = 1) {
    const std::string files = JoinPath(directory_.path(), "dump_tensor_data");
    EXPECT_TRUE(MakeDirectories(files));
    const std::string name = std::to_string(count_++) + ".pt";
    const std::span<const std::byte> data = std::as_bytes(std::span(values));
    const int64_t columns = static_cast<int64_t>(values.size()) / rows;
    const int64_t sizes[] = {rows, columns};
    const torch_pt::Frame frame =
        torch_pt::MakeFrame(DType::kFloat32, sizes, data.size(), Crc32(data));
    const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
    EXPECT_TRUE(WriteFileAtomically(JoinPath(files, name), frame.head + body + frame.tail, false));
    Item item = TensorForTest({5, 0, 1, 2}, {rows, columns});
    item.data_name = name;
    return item;
  }
  // Adds an input to the last call, named as positional ones are.
  void Read(const Item& item, const std::string& name = "input.0") {
    Item named = item;
    named.name = call_ + "." + name;
    calls_.Row(ItemRole::kInput, named, named);
  }
  void Begin(const std::string& api) {
    call_ = "Tensor." + api + ".0.forward";
    calls_.Pair(call_);
  }
  bool Follows(const Item& result) {
    calls_.Out(result, result);
    const Comparison comparison = Done();
    return FollowsFromInputs(comparison, comparison.rows.back());
  }
  Comparison Done() {
    Comparison comparison = calls_.get();
    comparison.target_path = JoinPath(directory_.path(), "dump.json");
    return comparison;
  }

  plumbline::testing::TestDirectory directory_;
  ComparisonForTest calls_{CompareMode::kTensor};
  std::string call_;
  int count_ = 0;
};

TEST_F(RecomputedCallTest, SignsOfWhatWasRead) {
  Begin("sign_");
  Read(Tensor({1e-20F, -3, 4}));
  EXPECT_TRUE(Follows(Tensor({1, -1, 1})));
}

TEST_F(RecomputedCallTest, OneWrongSign) {
  Begin("sign_");
  Read(Tensor({1e-20F, -3, 4}));
  EXPECT_FALSE(Follows(Tensor({1, -1, -1})));
}

TEST_F(RecomputedCallTest, OperandsAreSpread) {
  Begin("mul");
  Read(Tensor({1, 2, 3, 4}, 2));
  Read(Tensor({10, 100}), "input.1");
  EXPECT_TRUE(Follows(Tensor({10, 200, 30, 400}, 2)));
}

TEST_F(RecomputedCallTest, OtherShapesAreNotComputed) {
  Begin("mul");
  Read(Tensor({1, 2, 3, 4}, 2));
  Read(Tensor({10, 100, 1000}), "input.1");
  EXPECT_FALSE(Follows(Tensor({10, 200, 30, 400}, 2)));
}

TEST_F(RecomputedCallTest, UnknownArgumentsAreNotGuessed) {
  Begin("mul");
  Read(Tensor({1, 2}));
  Read(Tensor({3, 4}), "other");
  EXPECT_FALSE(Follows(Tensor({3, 8})));
}

TEST_F(RecomputedCallTest, WithoutFilesNothingIsComputed) {
  Begin("sign_");
  Item read = Tensor({1, -3});
  read.data_name = "missing.pt";
  Read(read);
  EXPECT_FALSE(Follows(Tensor({1, -1})));
}

// A float32 tensor is compared with a number of Python as float32 holds that.
TEST_F(RecomputedCallTest, NumbersAreComparedInTheTypeOfTheTensor) {
  Item number;
  number.dtype = "float";
  number.statistics[0] = 0.05;  // less than 0.05F
  const auto follows = [&](const Values& result) {
    Begin("__gt__");
    Read(Tensor({0.05F, 0.0500001F, 0.04F}));
    Read(number, "input.1");
    return Follows(Tensor(result));
  };
  EXPECT_TRUE(follows({0, 1, 0}));
  EXPECT_FALSE(follows({1, 1, 0}));
  EXPECT_FALSE(follows({0, 0, 0}));
}

// The call of both sides, with inputs and results that differ.
class ContradictedInputsTest : public RecomputedCallTest {
 protected:
  void Read(const Values& target, const Values& golden) {
    Row(ItemRole::kInput, target, golden, "input." + std::to_string(inputs_++));
  }
  bool Contradicts(const Values& target, const Values& golden, bool of_sample = false) {
    Row(ItemRole::kOutput, target, golden, "output.0");
    Comparison comparison = Done();
    comparison.golden_path = comparison.target_path;
    return ContradictsInputs(comparison, comparison.rows.back(), of_sample);
  }

  int64_t rows_ = 1;

 private:
  void Row(ItemRole role, const Values& target, const Values& golden, const std::string& name) {
    Item ours = Tensor(target, rows_), theirs = Tensor(golden, rows_);
    ours.name = theirs.name = call_ + "." + name;
    calls_.Row(role, ours, theirs);
  }
  int inputs_ = 0;
};

TEST_F(ContradictedInputsTest, OnlyWhatTheTargetAloneDoes) {
  const auto contradicts = [&](const Values& target, const Values& golden) {
    Begin("sign_");
    Read({1e-20F, -3, 4}, {-1e-20F, -3, 4});
    return Contradicts(target, golden);
  };
  EXPECT_FALSE(contradicts({1, -1, 1}, {-1, -1, 1}));
  EXPECT_TRUE(contradicts({1, -1, -1}, {-1, -1, 1}));
  EXPECT_FALSE(contradicts({1, -1, -1}, {-1, -1, -1}));  // nor golden: another meaning
}

TEST_F(ContradictedInputsTest, MoreThanTheRoundingOfOneWayOrAnother) {
  const auto contradicts = [&](float factor) {
    Begin("mul");
    Read({1, 2, 3}, {1.5F, 2, 3});
    Read({2, 2, 2}, {2, 2, 2});
    return Contradicts({2 * factor, 4, 6}, {3, 4, 6});
  };
  EXPECT_FALSE(contradicts(1 + 16 * 0x1p-24F));
  EXPECT_TRUE(contradicts(1.001F));
}

TEST_F(ContradictedInputsTest, OfLargeTensorsTheFirstElements) {
  constexpr size_t kCount = 1 << 15;
  rows_ = 64;
  const auto contradicts = [&](size_t wrong, bool of_sample) {
    Begin("neg");
    const Values read(kCount, 1), negative(kCount, -1);
    Values target = negative;
    target[wrong] = 1;
    Read(read, read);
    return Contradicts(target, negative, of_sample);
  };
  EXPECT_TRUE(contradicts(kCount - 1, false));
  EXPECT_FALSE(contradicts(kCount - 1, true));
}

class MaskedWriteTest : public RecomputedCallTest {
 protected:
  // x[mask] = 7, and what a later call reads of x.
  bool Follows(const Values& left) {
    Begin("__setitem__");
    Read(Tensor({1, 2, 3}));
    Read(Tensor({0, 1, 0}), "input.1");
    Read(Tensor({7}), "input.2");
    Begin("abs");
    Read(Tensor(left));
    const Comparison comparison = Done();
    const ComparedCall* write = MaskedWriteBefore(comparison, comparison.rows.back());
    return write != nullptr && FollowsFromWrite(comparison, *write, comparison.rows.back());
  }
};

TEST_F(MaskedWriteTest, TheNumberStandsWhereTheMaskIsTrue) { EXPECT_TRUE(Follows({1, 7, 3})); }

TEST_F(MaskedWriteTest, NothingElseChanges) { EXPECT_FALSE(Follows({1, 7, 7})); }

TEST_F(MaskedWriteTest, WhatWasNotWrittenIsSeen) { EXPECT_FALSE(Follows({1, 2, 3})); }

}  // namespace

namespace {

const Values kRead{101, -38, 99, -42, 101, -42, 99, -38};
const Values kByChannel{1, 1, -1, -1, 1, -1, -1, 1};
const Values kByRow{1, -1, 1, -1, 1, -1, 1, -1};

class RecomputedNormTest : public ::testing::Test {
 protected:
  Item Tensor(const Values& values, const Shape& shape) {
    const std::string files = JoinPath(directory_.path(), "dump_tensor_data");
    EXPECT_TRUE(MakeDirectories(files));
    const std::string name = std::to_string(count_++) + ".pt";
    const std::span<const std::byte> data = std::as_bytes(std::span(values));
    const torch_pt::Frame frame =
        torch_pt::MakeFrame(DType::kFloat32, shape, data.size(), Crc32(data));
    const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
    EXPECT_TRUE(WriteFileAtomically(JoinPath(files, name), frame.head + body + frame.tail, false));
    Item item = TensorForTest({101, -42, 30, 200}, shape);
    item.data_name = name;
    return item;
  }
  static Item Scalar(Recorded value) {
    Item item;
    item.statistics[0] = std::move(value);
    return item;
  }
  void Begin(const std::string& name) {
    call_ = name;
    calls_.Pair(name);
  }
  void Read(const Item& item, const std::string& name) {
    Item named = item;
    named.name = call_ + "." + name;
    calls_.Row(ItemRole::kInput, named, named);
  }
  // A call of four samples and two channels that returns `y`.
  bool Follows(const std::string& api, const Values& y,
               std::optional<uint32_t> forward = std::nullopt) {
    calls_.Out(Tensor(y, {4, 2}), Tensor(y, {4, 2}));
    Comparison comparison = calls_.get();
    comparison.target_path = JoinPath(directory_.path(), "dump.json");
    EXPECT_TRUE(call_.find(api) != call_.npos);
    return FollowsFromNormalised(comparison, comparison.rows.back(), forward);
  }
  void BeginBatchNorm(bool is_training) {
    Begin("Functional.batch_norm.0.forward");
    Read(Tensor(kRead, {4, 2}), "input.0");
    Read(Scalar(is_training), "input.5");
    Read(Scalar(1e-12), "input.7");
  }

  plumbline::testing::TestDirectory directory_;
  ComparisonForTest calls_{CompareMode::kTensor};
  std::string call_;
  int count_ = 0;
};

TEST_F(RecomputedNormTest, BatchNormInTraining) {
  BeginBatchNorm(true);
  EXPECT_TRUE(Follows("batch_norm", kByChannel));
}

TEST_F(RecomputedNormTest, BatchNormOfKeptStatisticsIsNotComputed) {
  BeginBatchNorm(false);
  EXPECT_FALSE(Follows("batch_norm", kByChannel));
}

TEST_F(RecomputedNormTest, AnotherResultIsSeen) {
  BeginBatchNorm(true);
  EXPECT_FALSE(Follows("batch_norm", kByRow));
}

TEST_F(RecomputedNormTest, LayerNormTakesItsShape) {
  Begin("Functional.layer_norm.0.forward");
  Read(Tensor(kRead, {4, 2}), "input.0");
  Read(Scalar(int64_t{2}), "input.1.0");
  Read(Tensor({2, 2}, {2}), "input.2");
  Read(Scalar(1e-12), "kwargs.eps");
  Values doubled = kByRow;
  for (float& value : doubled) value *= 2;
  EXPECT_TRUE(Follows("layer_norm", doubled));
}

TEST_F(RecomputedNormTest, GroupNormTakesItsNumber) {
  Begin("Functional.group_norm.0.forward");
  Read(Tensor(kRead, {4, 2}), "input.0");
  Read(Scalar(int64_t{1}), "input.1");
  Read(Scalar(1e-12), "input.4");
  EXPECT_TRUE(Follows("group_norm", kByRow));
}

TEST_F(RecomputedNormTest, TheGradientOfWhatForwardRead) {
  BeginBatchNorm(true);
  Begin("Functional.batch_norm.0.backward");
  Read(Tensor(kByChannel, {4, 2}), "input.0");
  EXPECT_TRUE(Follows("batch_norm", Values(8, 1e-7F), 0));
}

TEST_F(RecomputedNormTest, OtherFunctionsAreNotComputed) {
  Begin("Torch.batch_norm.0.forward");
  Read(Tensor(kRead, {4, 2}), "input.0");
  Read(Scalar(true), "input.5");
  EXPECT_FALSE(Follows("batch_norm", kByChannel));
}

TEST_F(RecomputedNormTest, WithoutFilesNothingIsComputed) {
  Begin("Functional.batch_norm.0.forward");
  Item read = Tensor(kRead, {4, 2});
  read.data_name = "missing.pt";
  Read(read, "input.0");
  Read(Scalar(true), "input.5");
  EXPECT_FALSE(Follows("batch_norm", kByChannel));
}

}  // namespace

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

}  // namespace plumbline::verdict::recomputed_test
