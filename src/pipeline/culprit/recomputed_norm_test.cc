#include "pipeline/culprit/recomputed_norm.h"

#include <gtest/gtest.h>

#include <optional>
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
}  // namespace plumbline::pipeline
