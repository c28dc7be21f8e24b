#include "load/gathered_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>

#include "formats/pytorch/tensor_convert.h"
#include "load/run_reader.h"
#include "record/gathered_name.h"

namespace plumbline::load {
namespace {

std::vector<float> Counted(size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class GatheredTensors : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "gathered;tensors";
    std::filesystem::create_directories(directory_ + "/rank;0");
  }
  std::string Write(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    const std::vector<int64_t> strides = ContiguousStrides(shape);
    const TensorView view{DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), shape,
                          strides};
    EXPECT_TRUE(WriteNpy(view, directory_ + "/rank;0/" + name));
    return "rank;0/" + name;
  }
  // By its name, as every reader opens it.
  [[nodiscard]] Result<std::vector<float>> ValuesOf(const GatheredTensor& gathered) const {
    PL_TRY_ASSIGN(const TensorFile file, OpenTensorIn(directory_, GatheredName(gathered)));
    EXPECT_EQ(Shape(file.view().sizes.begin(), file.view().sizes.end()), gathered.shape);
    std::vector<float> values(static_cast<size_t>(file.view().element_count()));
    CopyContiguous(file.view(), std::as_writable_bytes(std::span(values)));
    return values;
  }

  std::string directory_;
};

TEST_F(GatheredTensors, ColumnsOfTwoRanksStandBesideEachOther) {
  const GatheredTensor gathered{.shape = {2, 1, 4},
                                .axes = {{2, 2}},
                                .pieces = {{{Write("a.npy", {2, 1, 2}, {0, 1, 4, 5})}, {{0}}},
                                           {{Write("b.npy", {2, 1, 2}, {2, 3, 6, 7})}, {{1}}}}};
  EXPECT_EQ(*ValuesOf(gathered), Counted(8));
}

TEST_F(GatheredTensors, ZigZagTakesOneBlockFromEitherEnd) {
  const GatheredTensor gathered{.shape = {2, 4},
                                .axes = {{1, 4}},
                                .pieces = {{{Write("a.npy", {2, 2}, {0, 3, 4, 7})}, {{0, 3}}},
                                           {{Write("b.npy", {2, 2}, {1, 2, 5, 6})}, {{1, 2}}}}};
  EXPECT_EQ(*ValuesOf(gathered), Counted(8));
}

TEST_F(GatheredTensors, TwoDimensionsMayBeDivided) {
  GatheredTensor gathered{.shape = {4, 4}, .axes = {{0, 2}, {1, 2}}};
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::vector<float> own;
    for (int64_t row = 0; row < 2; ++row) {
      for (int64_t column = 0; column < 2; ++column) {
        own.push_back(static_cast<float>(4 * (2 * (rank / 2) + row) + 2 * (rank % 2) + column));
      }
    }
    gathered.pieces.push_back(
        {{Write(std::to_string(rank) + ".npy", {2, 2}, own)}, {{rank / 2}, {rank % 2}}});
  }
  EXPECT_EQ(*ValuesOf(gathered), Counted(16));
}

TEST_F(GatheredTensors, SummandsAreAddedAndDivided) {
  const GatheredTensor gathered{.shape = {2, 1, 2},
                                .pieces = {{{Write("a.npy", {2, 1, 2}, {1, 2, 3, 4}),
                                             Write("b.npy", {2, 1, 2}, {3, 4, 5, 6})},
                                            {}}},
                                .divisor = 2};
  EXPECT_EQ(*ValuesOf(gathered), (std::vector<float>{2, 3, 4, 5}));
}

TEST_F(GatheredTensors, AScalarIsACopy) {
  const GatheredTensor gathered{.shape = {}, .pieces = {{{Write("a.npy", {}, {7})}, {}}}};
  EXPECT_EQ(*ValuesOf(gathered), (std::vector<float>{7}));
  EXPECT_FALSE(IsInOrderOfSize(GatheredName(gathered)));
}

TEST_F(GatheredTensors, OfUnlikeOrdersTheSizesAreCompared) {
  GatheredTensor gathered{
      .shape = {4},
      .pieces = {{{Write("a.npy", {2}, {3, NAN})}, {}}, {{Write("b.npy", {2}, {-1, 2})}, {}}}};
  gathered.is_ascending = true;
  EXPECT_TRUE(IsInOrderOfSize(GatheredName(gathered)));
  const std::vector<float> values = *ValuesOf(gathered);
  EXPECT_EQ(std::vector<float>(values.begin(), values.end() - 1), (std::vector<float>{-1, 2, 3}));
  EXPECT_TRUE(std::isnan(values.back()));
}

TEST_F(GatheredTensors, FilesThatDoNotMakeUpTheShapeAreCorrupt) {
  const std::string file = Write("a.npy", {2, 2}, Counted(4));
  for (const GatheredTensor& gathered :
       {GatheredTensor{.shape = {2, 4}, .axes = {{1, 2}}, .pieces = {{{file}, {{0}}}}},
        GatheredTensor{.shape = {2, 2}, .pieces = {{{file}, {}}, {{file}, {}}}},
        GatheredTensor{.shape = {int64_t{1} << 40, 1 << 22}, .pieces = {{{file}, {}}}}}) {
    const auto values = ValuesOf(gathered);
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().code(), ErrorCode::kCorrupt) << values.error().message();
  }
}

TEST_F(GatheredTensors, FilesElsewhereAreNotRead) {
  for (const char* path : {"/etc/x.npy", "../x.npy", "rank;0/../../x.npy", ""}) {
    const auto values = ValuesOf({.shape = {1}, .pieces = {{{path}, {}}}});
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().code(), ErrorCode::kInvalidArgument) << values.error().message();
  }
}

TEST(GatheredName, WhatIsNoneIsAFileName) {
  for (const char* name :
       {"x.pt", "gathered;shape=2", "gathered;shape=2;at=;file=", "gathered;shape=-2;at=;file=a",
        "gathered;shape=4;axis=1:2;at=0;file=a", "gathered;shape=4;axis=0:2;at=2;file=a",
        "gathered;shape=4;axis=0:0;at=0;file=a", "gathered;shape=4;divisor=0;at=;file=a",
        "gathered;shape=4;file=a", "gathered;shape=4;at=;file=a%2",
        "gathered;shape=4;axis=0:2;at=0;file=a;at=0;file=b",
        "gathered;shape=4;axis=0:4;at=0+0;file=a"}) {
    const auto parsed = ParseGatheredName(name);
    EXPECT_TRUE(!parsed || parsed->pieces.front().files.front().empty()) << name;
  }
}

}  // namespace
}  // namespace plumbline::load
