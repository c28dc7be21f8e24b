#include "base/small_file.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "base/test_directory.h"

namespace plumbline {
namespace {

TEST(SmallFile, FitsOrIsReadInAnotherWay) {
  const testing::TestDirectory root;
  std::ofstream(root.Path("seven")) << "1234567";
  std::ofstream(root.Path("eight")) << "12345678";
  std::ofstream(root.Path("empty"));
  const auto directory = Directory::Open(root.path());
  ASSERT_TRUE(directory);
  std::array<std::byte, 8> buffer{};
  const auto seven = ReadSmallFile(*directory, "seven", buffer);
  ASSERT_TRUE(seven);
  EXPECT_EQ(seven->size(), 7U);
  EXPECT_EQ(static_cast<char>(seven->back()), '7');
  EXPECT_TRUE(ReadSmallFile(*directory, "eight", buffer)->empty());
  EXPECT_TRUE(ReadSmallFile(*directory, "empty", buffer)->empty());
  EXPECT_EQ(ReadSmallFile(*directory, "none", buffer).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline
