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
