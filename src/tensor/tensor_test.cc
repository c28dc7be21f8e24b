#include "plumbline/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/sanitizer_for_test.h"

namespace plumbline {
namespace {

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
