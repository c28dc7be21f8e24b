#include "capture/tensor_cuts.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace plumbline::capture {
namespace {

// Elements 0, 1, 2, ... of a tensor of these sizes; what `cut` leaves of them, row-major.
std::vector<int32_t> Left(const Cut& cut, const Shape& sizes, std::vector<int64_t> strides = {}) {
  if (strides.empty()) strides = ContiguousStrides(sizes);
  std::vector<int32_t> elements(static_cast<size_t>(ElementCount(sizes).value()));
  std::iota(elements.begin(), elements.end(), 0);
  const TensorView whole{DType::kInt32, reinterpret_cast<const std::byte*>(elements.data()), sizes,
                         strides};
  const TensorView part = cut.Of(whole);
  std::vector<int32_t> left(static_cast<size_t>(part.element_count()));
  CopyContiguous(part, std::as_writable_bytes(std::span(left)));
  return left;
}

std::vector<int32_t> Sliced(std::vector<TensorSlice> slices, const Shape& sizes) {
  return Left(TensorCuts(std::move(slices), "").Of(sizes, true), sizes);
}

using Elements = std::vector<int32_t>;

TEST(TensorCuts, SlicesCountAsInPython) {
  EXPECT_EQ(Sliced({{.begin = 1, .end = 3}}, {4}), (Elements{1, 2}));
  EXPECT_EQ(Sliced({{.begin = -2}}, {4}), (Elements{2, 3}));
  EXPECT_EQ(Sliced({{.begin = 1, .end = -1}}, {4}), (Elements{1, 2}));
  EXPECT_EQ(Sliced({{.begin = -9, .end = 9}}, {4}), (Elements{0, 1, 2, 3}));
  EXPECT_EQ(Sliced({{.end = -9}}, {4}), Elements());
  EXPECT_EQ(Sliced({{.begin = 3, .end = 1}}, {4}), Elements());
  EXPECT_EQ(Sliced({{.begin = 7}}, {4}), Elements());
  EXPECT_EQ(Sliced({{.end = 1}, {.dim = 1, .begin = 1}}, {2, 3}), (Elements{1, 2}));
}

TEST(TensorCuts, SizeIsACondition) {
  EXPECT_EQ(Sliced({{.size = 4, .end = 1}}, {4}), (Elements{0}));
  EXPECT_EQ(Sliced({{.size = 5, .end = 1}}, {4}), (Elements{0, 1, 2, 3}));
}

TEST(TensorCuts, LaterSlicesOfADimensionWin) {
  EXPECT_EQ(Sliced({{.end = 1}, {.begin = 2}}, {4}), (Elements{2, 3}));
  EXPECT_EQ(Sliced({{.end = 1}, {.size = 5, .begin = 2}}, {4}), (Elements{0}));
}

TEST(TensorCuts, DimensionsThatATensorLacksAreIgnored) {
  EXPECT_EQ(Sliced({{.dim = 1, .end = 0}}, {2}), (Elements{0, 1}));
  EXPECT_EQ(Sliced({{.end = 0}}, {}), (Elements{0}));
  EXPECT_TRUE(TensorCuts({{.dim = 3}}, "").Of(Shape{2}, true).is_whole);
}

TEST(TensorCuts, StridesAreThoseOfTheWhole) {
  const TensorCuts cuts({{.begin = 1}, {.dim = 1, .end = 1}}, "");
  EXPECT_EQ(Left(cuts.Of(Shape{2, 2}, true), {2, 2}, {1, 2}), (Elements{1}));
}

TEST(TensorCuts, RowsOfTheRequestAreWhereItsTokensStand) {
  TensorCuts cuts({}, "b");
  const std::vector<BatchShare> shares = {{"a", 2}, {"b", 3}, {"c", 1}};
  ASSERT_TRUE(cuts.UseBatch(shares));
  EXPECT_EQ(Left(cuts.Of(Shape{6}, true), {6}), (Elements{2, 3, 4}));
  EXPECT_EQ(cuts.Of(Shape{6, 8}, true).sizes, (Shape{3, 8}));
  EXPECT_EQ(cuts.Of(Shape{1, 6}, true).sizes, (Shape{1, 3}));
  EXPECT_EQ(cuts.Of(Shape{1, 6, 8}, true).begins, (std::vector<int64_t>{0, 2, 0}));
  // Another length; heads; a parameter.
  EXPECT_TRUE(cuts.Of(Shape{5, 6}, true).is_whole);
  EXPECT_TRUE(cuts.Of(Shape{1, 6, 6, 8}, true).is_whole);
  EXPECT_TRUE(cuts.Of(Shape{6, 8}, false).is_whole);
  EXPECT_TRUE(cuts.Of(Shape{}, true).is_whole);
}

TEST(TensorCuts, RowsComeBehindTheSlices) {
  TensorCuts cuts({{.end = 1}, {.dim = 1, .end = 2}}, "b");
  const std::vector<BatchShare> shares = {{"a", 1}, {"b", 2}};
  ASSERT_TRUE(cuts.UseBatch(shares));
  EXPECT_EQ(Left(cuts.Of(Shape{3, 3}, true), {3, 3}), (Elements{3, 4, 6, 7}));
  EXPECT_EQ(Left(cuts.Of(Shape{2, 3}, true), {2, 3}), (Elements{0, 1}));
  cuts.ForgetBatch();
  EXPECT_EQ(Left(cuts.Of(Shape{3, 3}, true), {3, 3}), (Elements{0, 1}));
}

TEST(TensorCuts, ABatchWithoutTheRequestIsTold) {
  TensorCuts cuts({}, "b");
  const std::vector<BatchShare> with = {{"b", 2}};
  const std::vector<BatchShare> without = {{"a", 2}};
  ASSERT_TRUE(cuts.UseBatch(with));
  EXPECT_FALSE(cuts.UseBatch(without));
  EXPECT_FALSE(cuts.UseBatch({}));
  EXPECT_TRUE(cuts.are_none());
}

}  // namespace
}  // namespace plumbline::capture
