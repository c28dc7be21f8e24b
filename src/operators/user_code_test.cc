#include "operators/user_code.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace plumbline::operators {
namespace {

// The elements 0, 1, 2, ... of these sizes.
acl::Elements Counted(const Shape& sizes) {
  acl::Elements elements;
  elements.dtype = DType::kInt32;
  elements.sizes = sizes;
  elements.strides = ContiguousStrides(sizes);
  const auto count = static_cast<size_t>(*ElementCount(sizes));
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  elements.owned.resize(count * sizeof(int32_t));
  if (count > 0) std::memcpy(elements.owned.data(), values.data(), elements.owned.size());
  elements.bytes = elements.owned;
  return elements;
}

// The elements that are left; the sizes must be those that were wanted.
std::vector<int32_t> Cropped(const Shape& from, const Shape& wanted) {
  const auto cropped = CroppedTo(wanted, Counted(from));
  EXPECT_TRUE(cropped);
  if (!cropped) return {};
  EXPECT_EQ(cropped->sizes, wanted);
  std::vector<int32_t> values(cropped->bytes.size() / sizeof(int32_t));
  if (!values.empty()) std::memcpy(values.data(), cropped->bytes.data(), cropped->bytes.size());
  return values;
}

TEST(CroppedTo, CutsTheEndsOff) {
  EXPECT_EQ(Cropped({3, 4}, {2, 3}), (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(Cropped({2, 3, 2}, {2, 1, 2}), (std::vector<int32_t>{0, 1, 6, 7}));
  EXPECT_EQ(Cropped({3, 4}, {0, 4}), (std::vector<int32_t>{}));
}

TEST(CroppedTo, OnesMayComeAndGo) {
  EXPECT_EQ(Cropped({2, 1, 3}, {2, 3}), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Cropped({6}, {1, 6, 1, 1}), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Cropped({1}, {}), (std::vector<int32_t>{0}));
  EXPECT_EQ(Cropped({3, 2}, {2}), (std::vector<int32_t>{0, 2}));
}

TEST(CroppedTo, SmallerResultsAreRefused) {
  for (const auto& [from, wanted] :
       {std::pair{Shape{2, 3}, Shape{3, 2}}, std::pair{Shape{2}, Shape{3}},
        std::pair{Shape{}, Shape{2, 2}}, std::pair{Shape{4, 3}, Shape{2, 3, 2}}}) {
    const auto cropped = CroppedTo(wanted, Counted(from));
    ASSERT_FALSE(cropped);
    EXPECT_EQ(cropped.error().code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace plumbline::operators
