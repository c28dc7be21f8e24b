#include "load/operator_replay.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/file/test_directory.h"
#include "formats/hdf5/hdf5_dump.h"

namespace plumbline::load {
namespace {

using hdf5::Argument;
using hdf5::TensorValue;
using hdf5::ValueKind;

// A tensor of `count` zeros.
TensorValue Zeros(DType dtype, int64_t count) {
  static const std::vector<std::byte> kZeros(1024);
  static std::deque<Shape> shapes;
  static const std::vector<int64_t> kStride{1};
  return {{dtype, kZeros.data(), shapes.emplace_back(Shape{count}), kStride}};
}

class OperatorReplayTest : public ::testing::Test {
 protected:
  void Record(const std::vector<std::pair<std::string, std::vector<Argument>>>& calls) {
    Result<hdf5::DumpWriter> writer = hdf5::DumpWriter::Create(path_);
    ASSERT_TRUE(writer);
    int64_t id = 0;
    for (const auto& [operation, arguments] : calls) {
      ASSERT_TRUE(writer->Write({operation, ++id, hdf5::Side::kInput}, arguments));
    }
    ASSERT_TRUE(writer->Commit());
    Result<OperatorReplay> replay = OperatorReplay::Open(path_);
    ASSERT_TRUE(replay);
    replay_.emplace(*std::move(replay));
  }
  // Sequence id of the call that stands for this one; 0: none.
  int64_t Match(const std::string& operation, const std::vector<Argument>& arguments) {
    const auto match = replay_->Match(operation, arguments);
    EXPECT_TRUE(match) << match.error().message();
    return match && *match ? (*match)->place.call : 0;
  }

  testing::TestDirectory directory_;
  std::string path_ = directory_.Path("x.h5");
  std::optional<OperatorReplay> replay_;
};

TEST_F(OperatorReplayTest, EqualCallsInTheOrderOfTheirNumbers) {
  const Argument self{"self", ValueKind::kTensor, Zeros(DType::kFloat32, 3)};
  Record(std::vector<std::pair<std::string, std::vector<Argument>>>(12, {"relu", {self}}));
  for (int64_t id = 1; id <= 12; ++id) EXPECT_EQ(Match("relu", {self}), id);
  EXPECT_EQ(Match("relu", {self}), 0);
}

TEST_F(OperatorReplayTest, ShapesTypesAndNumbersDecide) {
  const auto call = [](DType dtype, int64_t count, int64_t dim, double p) {
    return std::vector<Argument>{{"self", ValueKind::kTensor, Zeros(dtype, count)},
                                 {"dim", ValueKind::kInteger, dim},
                                 {"p", ValueKind::kDouble, p}};
  };
  Record({{"op", call(DType::kInt64, 3, 1, 0.5)}});
  EXPECT_EQ(Match("op", call(DType::kInt64, 4, 1, 0.5)), 0);
  EXPECT_EQ(Match("op", call(DType::kFloat32, 3, 1, 0.5)), 0);
  EXPECT_EQ(Match("op", call(DType::kInt64, 3, 2, 0.5)), 0);
  EXPECT_EQ(Match("op", call(DType::kInt64, 3, 1, 0.25)), 0);
  EXPECT_EQ(Match("other", call(DType::kInt64, 3, 1, 0.5)), 0);
  EXPECT_EQ(Match("op", call(DType::kInt32, 3, 1, 0.5)), 1);  // as good as int64
}

TEST_F(OperatorReplayTest, ScalarsTakeTheRecordedValue) {
  Record({{"add", {{"alpha", ValueKind::kScalar, 0.75}}}});
  EXPECT_EQ(Match("add", {{"alpha", ValueKind::kScalar, int64_t{1}}}), 0);
  const std::vector<Argument> running{{"alpha", ValueKind::kScalar, 2.0}};
  const auto match = replay_->Match("add", running);
  ASSERT_TRUE(match && *match);
  ASSERT_EQ((*match)->scalars.size(), 1U);
  EXPECT_EQ(std::get<double>((*match)->scalars[0].second), 0.75);
}

TEST_F(OperatorReplayTest, NamesOfOtherDevices) {
  const TensorValue tensor = Zeros(DType::kFloat32, 2);
  Record({{"CudnnConvolutionBackward", {{"self", ValueKind::kTensor, tensor}}}});
  EXPECT_EQ(Match("NpuConvolutionBackward",
                  {{"input", ValueKind::kTensor, tensor}, {"benchmark", ValueKind::kBool, true}}),
            1);
}

TEST_F(OperatorReplayTest, DepthwiseConvolutionsAreNotTakenForCudnns) {
  const auto call = [](DType dtype) {
    static const std::vector<std::byte> kZeros(size_t{1} << 16);
    static const Shape kImage = {8, 2, 4, 4}, kWeight = {2, 1, 3, 3};
    static const std::vector<int64_t> kImageStrides = {32, 16, 4, 1}, kWeightStrides = {9, 9, 3, 1};
    return std::vector<Argument>{
        {"input", ValueKind::kTensor, TensorValue{{dtype, kZeros.data(), kImage, kImageStrides}}},
        {"weight", ValueKind::kTensor,
         TensorValue{{dtype, kZeros.data(), kWeight, kWeightStrides}}},
        {"groups", ValueKind::kInteger, int64_t{2}}};
  };
  const std::vector<Argument> arguments = call(DType::kFloat32);
  Record({{"CudnnConvolutionBackward", arguments}, {"ThnnConvDepthwise2DBackward", arguments}});
  EXPECT_EQ(Match("NpuConvolutionBackward", arguments), 2);
  EXPECT_EQ(Match("NpuConvolutionBackward", arguments), 1);  // nothing else is left
}

TEST_F(OperatorReplayTest, ListsHaveEquallyManyMembers) {
  const TensorValue part = Zeros(DType::kFloat32, 2);
  const auto cat = [&](size_t count) {
    return std::vector<Argument>{
        {"tensors", ValueKind::kTensorList, std::vector<TensorValue>(count, part)}};
  };
  Record({{"cat", cat(2)}});
  EXPECT_EQ(Match("cat", cat(1)), 0);
  EXPECT_EQ(Match("cat", cat(3)), 0);
  const std::vector<Argument> running = cat(2);
  const auto match = replay_->Match("cat", running);
  ASSERT_TRUE(match && *match);
  ASSERT_EQ((*match)->tensors.size(), 2U);
  EXPECT_EQ((*match)->tensors[1].member, 1U);
  EXPECT_EQ(replay_->Load(**match, 1)->bytes, std::vector<std::byte>(8));
}

}  // namespace
}  // namespace plumbline::load
