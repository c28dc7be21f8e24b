#include "plumbline/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/process/sanitizer_for_test.h"

namespace plumbline {

namespace {

TEST(DType, EverySpellingOfEveryRowParsesBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DTypeInfo& info = InfoOf(dtype);
    EXPECT_EQ(info.dtype, dtype);
    for (const std::string_view text :
         {info.name, info.torch_name, info.mindspore_name, info.numpy_descr}) {
      if (!text.empty()) {
        EXPECT_EQ(ParseDType(text), dtype) << text;
      }
    }
  }
}

TEST(DType, AliasesAndPrefixesParse) {
  EXPECT_EQ(ParseDType("torch.half"), DType::kFloat16);
  EXPECT_EQ(ParseDType("torch.long"), DType::kInt64);
  EXPECT_EQ(ParseDType("mindspore.bfloat16"), DType::kBFloat16);
  EXPECT_EQ(ParseDType("bool_"), DType::kBool);
  EXPECT_EQ(ParseDType("f8"), DType::kFloat64);
  EXPECT_EQ(ParseDType("<i1"), DType::kInt8);
  EXPECT_EQ(ParseDType("?"), DType::kBool);
}

TEST(DType, UnknownTextIsNothing) {
  for (const std::string_view text : {"", "torch.", "Float", ">f4", "<f3", "float32 ",
                                      "torch.qint8", "torch.torch.float32", "<", "|"}) {
    EXPECT_EQ(ParseDType(text), std::nullopt) << text;
  }
}

TEST(DType, UnitRoundoffIsHalfTheSpacingAtOne) {
  EXPECT_EQ(UnitRoundoff(DType::kFloat32), 0x1p-24);
  EXPECT_EQ(UnitRoundoff(DType::kBFloat16), 0x1p-8);
  EXPECT_EQ(UnitRoundoff(DType::kFloat8E5M2), 0x1p-3);
  EXPECT_EQ(UnitRoundoff(DType::kComplex128), 0x1p-53);
  EXPECT_EQ(UnitRoundoff(DType::kInt32), 0);
}

TEST(ElementCount, ProductOfTheDimensions) {
  EXPECT_EQ(*ElementCount({}), 1);
  EXPECT_EQ(*ElementCount(Shape{2, 3, 4}), 24);
  EXPECT_EQ(*ElementCount(Shape{5, 0, 7}), 0);
}

TEST(ElementCount, NegativeDimensionIsCorrupt) {
  EXPECT_EQ(ElementCount(Shape{2, -1}).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ElementCount(Shape{0, -1}).error().code(), ErrorCode::kCorrupt);
}

TEST(ElementCount, OverflowIsCorruptUnlessADimensionIsZero) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(ElementCount(Shape{large, large}).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ElementCount(Shape{INT64_MAX, 2}).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(*ElementCount(Shape{large, large, 0}), 0);
  EXPECT_EQ(*ElementCount(Shape{0, large, large}), 0);
}

TEST(ContiguousStrides, ZeroSizedDimensionCountsAsOne) {
  EXPECT_EQ(ContiguousStrides(Shape{2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(ContiguousStrides(Shape{2, 0, 4}), (std::vector<int64_t>{4, 4, 1}));
  EXPECT_TRUE(ContiguousStrides({}).empty());
}

TEST(TensorView, SizesBesideAZeroMayBeAnything) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const Shape sizes = {0, kHuge, kHuge};
  const std::vector<int64_t> strides = ContiguousStrides(sizes);
  const TensorView view = {DType::kFloat32, nullptr, sizes, strides};
  EXPECT_EQ(view.element_count(), 0);  // an overflow would end the sanitizer build
  EXPECT_EQ(view.size_bytes(), 0u);
  EXPECT_TRUE(view.is_contiguous());
}

TEST(TensorView, ContiguityIgnoresStridesOfSizeOne) {
  const Shape sizes = {3, 1, 4};
  const std::vector<int64_t> strides = {4, 99, 1};
  EXPECT_TRUE((TensorView{DType::kInt8, nullptr, sizes, strides}).is_contiguous());
  const std::vector<int64_t> gap = {5, 99, 1};
  EXPECT_FALSE((TensorView{DType::kInt8, nullptr, sizes, gap}).is_contiguous());
  const Shape empty = {3, 0, 4};
  EXPECT_TRUE((TensorView{DType::kInt8, nullptr, empty, gap}).is_contiguous());
}

TEST(Tensor, CopyOfATransposedViewIsRowMajor) {
  const int32_t data[] = {0, 1, 2, 3, 4, 5};
  const Shape sizes = {3, 2};
  const std::vector<int64_t> strides = {1, 3};
  const auto copy =
      Tensor::Copy({DType::kInt32, std::as_bytes(std::span(data)).data(), sizes, strides});
  ASSERT_TRUE(copy);
  EXPECT_TRUE(copy->view().is_contiguous());
  int32_t out[6];
  std::memcpy(out, copy->view().data, sizeof(out));
  EXPECT_EQ(std::vector<int32_t>(out, out + 6), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
}

TEST(Tensor, CopyOfAnEmptyViewHasItsShape) {
  const Shape sizes = {4, 0};
  const std::vector<int64_t> strides = {0, 1};
  const auto copy = Tensor::Copy({DType::kFloat64, nullptr, sizes, strides});
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->view().element_count(), 0);
  EXPECT_EQ(copy->view().sizes[0], 4);
}

TEST(Tensor, CopyTooLargeForMemoryIsAnError) {
  if (kHasAddressSanitizer) {
    GTEST_SKIP() << "the sanitizer's allocator ends the process instead of failing";
  }
  const std::byte one{};
  const Shape sizes = {int64_t{1} << 60};
  const std::vector<int64_t> strides = {0};
  EXPECT_FALSE(Tensor::Copy({DType::kFloat64, &one, sizes, strides}));
}

}  // namespace

}  // namespace plumbline
