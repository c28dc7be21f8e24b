#include "operators/slice_assembly.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace plumbline::operators {
namespace {

// A part of `sizes` with the bytes from `first` on.
acl::Elements PartOf(Shape sizes, uint8_t first) {
  acl::Elements part;
  part.dtype = DType::kUInt8;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  part.sizes = std::move(sizes);
  part.owned.resize(static_cast<size_t>(count));
  for (std::byte& byte : part.owned) byte = static_cast<std::byte>(first++);
  part.bytes = part.owned;
  return part;
}

std::vector<acl::Elements> PartsOf(const std::vector<Shape>& sizes) {
  std::vector<acl::Elements> parts;
  uint8_t first = 0;
  for (const Shape& one : sizes) {
    parts.push_back(PartOf(one, first));
    first = static_cast<uint8_t>(first + parts.back().owned.size());
  }
  return parts;
}

std::vector<int> Bytes(const acl::Elements& whole) {
  std::vector<int> numbers;
  for (const std::byte byte : whole.owned) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

std::string ErrorOf(const std::vector<Shape>& sizes, const std::vector<Shape>& starts,
                    const std::vector<size_t>& axes) {
  const auto whole = PlaceParts(PartsOf(sizes), starts, axes);
  return whole ? "" : whole.error().message();
}

TEST(SliceAssembly, PartsBehindEachOther) {
  const auto whole = ConcatenateParts(PartsOf({{2, 1}, {2, 2}}), 1);
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->sizes, (Shape{2, 3}));
  EXPECT_EQ(Bytes(*whole), (std::vector<int>{0, 2, 3, 1, 4, 5}));
  EXPECT_FALSE(ConcatenateParts(PartsOf({{2, 1}, {3, 1}}), 1));
  EXPECT_FALSE(ConcatenateParts(PartsOf({{2, 1}, {2}}), 1));
  EXPECT_FALSE(ConcatenateParts(PartsOf({{2, 1}}), 2));
}

TEST(SliceAssembly, PartsAtTheirPlaces) {
  const auto whole = PlaceParts(PartsOf({{2, 1}, {2, 2}}), {{0, 2}, {0, 0}}, {1});
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->sizes, (Shape{2, 3}));
  EXPECT_EQ(Bytes(*whole), (std::vector<int>{2, 3, 0, 4, 5, 1}));
}

TEST(SliceAssembly, PlacesThatFillNoWhole) {
  EXPECT_NE(ErrorOf({{2}, {2}}, {{0}, {1}}, {0}).find("0 at (0) and 1 at (1) overlap"),
            std::string::npos);
  EXPECT_NE(ErrorOf({{2}, {2}}, {{0}, {3}}, {0}).find("do not fill the output"), std::string::npos);
  EXPECT_NE(ErrorOf({{2}, {2}}, {{1}, {3}}, {0}).find("do not fill"), std::string::npos);
  EXPECT_NE(ErrorOf({{2}}, {{-1}}, {0}).find("begin outside"), std::string::npos);
  EXPECT_NE(ErrorOf({{2}}, {{0, 0}}, {0}).find("other dimensions"), std::string::npos);
  EXPECT_NE(ErrorOf({{}, {}}, {{}, {}}, {}).find("overlap"), std::string::npos);
  // As many elements as there should be: an overlap and a hole.
  EXPECT_NE(ErrorOf({{2, 2}, {2, 2}}, {{0, 0}, {0, 1}}, {1}).find("overlap"), std::string::npos);
  EXPECT_EQ(ErrorOf({{2, 2}, {2, 2}}, {{0, 0}, {0, 2}}, {1}), "");
  // Along one dimension only, by what is said of the cut.
  EXPECT_NE(ErrorOf({{3, 5}, {2, 5}}, {{0, 0}, {3, 0}}, {1}).find("part 1 is uint8 (2,5)"),
            std::string::npos);
}

// Every part is looked at with its neighbours, not with all others.
TEST(SliceAssembly, ManyPartsTakeNoTime) {
  constexpr size_t kParts = 200000;
  std::vector<acl::Elements> parts;
  std::vector<Shape> starts;
  for (size_t i = 0; i < kParts; ++i) {
    parts.push_back(PartOf({1, 2}, static_cast<uint8_t>(i)));
    starts.push_back({static_cast<int64_t>(kParts - 1 - i), 0});
  }
  const auto whole = PlaceParts(parts, starts, {0});
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->sizes, (Shape{kParts, 2}));
  EXPECT_EQ(std::to_integer<uint8_t>(whole->owned[2]), static_cast<uint8_t>(kParts - 2));
  starts[7] = starts[8];
  EXPECT_FALSE(PlaceParts(parts, starts, {0}));
}

TEST(SliceAssembly, PartsThatShareBorders) {
  std::vector<acl::Elements> parts = PartsOf({{2, 2}, {2, 2}});  // 0 1 / 2 3 and 4 5 / 6 7
  const std::vector<Shape> starts = {{0, 0}, {1, 0}};
  EXPECT_FALSE(CoverParts(parts, starts));  // the middle row is 2 3 and 4 5
  parts[1].owned = {std::byte{2}, std::byte{3}, std::byte{6}, std::byte{7}};
  parts[1].bytes = parts[1].owned;
  const auto whole = CoverParts(parts, starts);
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->sizes, (Shape{3, 2}));
  EXPECT_EQ(Bytes(*whole), (std::vector<int>{0, 1, 2, 3, 6, 7}));
  EXPECT_FALSE(CoverParts(parts, {{0, 0}, {3, 0}}));                      // a hole between them
  EXPECT_FALSE(CoverParts(PartsOf({{2, 2}, {2, 2}}), {{0, 0}, {2, 2}}));  // more than they fill
  EXPECT_FALSE(CoverParts(PartsOf({{2, 2}, {4}}), {{0, 0}, {2, 0}}));
  parts[1].dtype = DType::kInt8;
  EXPECT_FALSE(CoverParts(parts, starts));
}

}  // namespace
}  // namespace plumbline::operators
