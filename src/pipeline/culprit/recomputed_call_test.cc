#include "pipeline/culprit/recomputed_call.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "base/test_directory.h"
#include "formats/torch_pt.h"
#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
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
}  // namespace plumbline::pipeline
