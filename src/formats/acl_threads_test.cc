#include "formats/acl_threads.h"

#include <gtest/gtest.h>

namespace plumbline::acl {
namespace {

Message WithAttribute(std::string value) {
  Message message;
  message.attributes.push_back({"_ffts", std::move(value)});
  return message;
}

constexpr const char* kText =
    R"({"threadMode": true, "slice_instance_num": 2, "other": [{}], "outputCutList": [[2, 1]],
        "input_tensor_slice": [[[{"lower": 0, "higher": 3}, {"lower": 0, "higher": 4}]],
                               [[{"lower": 3, "higher": 5}, {"lower": 0, "higher": 4}]]],
        "output_tensor_slice": [[[{"higher": 1, "lower": 0}]], []]})";

TEST(AclThreads, SizesOfEachPart) {
  const auto slices = ReadThreadSlices(WithAttribute(kText));
  ASSERT_TRUE(slices) << slices.error().message();
  ASSERT_TRUE(*slices);
  EXPECT_TRUE((*slices)->is_automatic);
  EXPECT_EQ((*slices)->instance_count, 2);
  EXPECT_EQ((*slices)->output_cuts, (std::vector<Shape>{{2, 1}}));
  EXPECT_EQ((*slices)->InputOf(1, 0), (Shape{2, 4}));
  EXPECT_EQ((*slices)->OutputOf(0, 0), Shape{1});
  EXPECT_EQ((*slices)->OutputOf(1, 0), std::nullopt);
  EXPECT_EQ((*slices)->output_starts, (std::vector<std::vector<Shape>>{{{0}}, {}}));
  EXPECT_EQ((*slices)->InputOf(2, 0), std::nullopt);
}

TEST(AclThreads, ThreadModeAsNumber) {
  const auto slices = ReadThreadSlices(WithAttribute(R"({"threadMode": 0})"));
  ASSERT_TRUE(slices && *slices);
  EXPECT_FALSE((*slices)->is_automatic);
}

TEST(AclThreads, OtherOperators) {
  EXPECT_FALSE(*ReadThreadSlices(Message()));
  EXPECT_FALSE(*ReadThreadSlices(WithAttribute("some text")));
}

TEST(AclThreads, CutTextIsCorrupt) {
  const std::string text = kText;
  for (size_t size = 13; size < text.size(); ++size) {
    const auto slices = ReadThreadSlices(WithAttribute(text.substr(0, size)));
    ASSERT_FALSE(slices) << size;
    EXPECT_EQ(slices.error().code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace plumbline::acl
