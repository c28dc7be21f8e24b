#include "report/result_names.h"

#include <gtest/gtest.h>

#include <array>

#include "base/file/test_directory.h"

namespace plumbline::report {
namespace {

using testing::TestDirectory;

TEST(ResultNames, StampIsFourteenDigits) {
  const TestDirectory directory;
  const std::string path = FreePath(directory.path(), "compare_ranks", ".json").text;
  const std::string name(BaseName(path));
  ASSERT_EQ(name.size(), std::string_view("compare_ranks_yyyymmddhhmmss.json").size()) << name;
  EXPECT_EQ(name.find_first_not_of("0123456789", name.rfind('_') + 1), name.rfind('.'));
}

TEST(ResultNames, EveryResultOfOneSecondHasItsOwn) {
  const TestDirectory directory;
  std::string last;
  for (int i = 0; i < 20; ++i) {
    const std::string path = FreePath(directory.path(), "result", ".json").text;
    EXPECT_EQ(KindOf(path), PathKind::kMissing);
    EXPECT_NE(path, last);
    ASSERT_TRUE(WriteFileAtomically(path, "x", false));
    last = path;
  }
}

// Files of one comparison share a stamp, so it must be free for all of them.
TEST(ResultNames, OneTakenExtensionTakesTheStamp) {
  const TestDirectory directory;
  constexpr std::array<std::string_view, 2> kBoth = {".xlsx", ".csv"};
  const std::string first = FreeStamp(directory.path(), "result", kBoth).text;
  ASSERT_TRUE(WriteFileAtomically(directory.Path("result_" + first + ".csv"), "x", false));
  EXPECT_NE(FreeStamp(directory.path(), "result", kBoth).text, first);
}

TEST(ResultNames, HeldNamesAreNotGivenAgain) {
  const TestDirectory directory;
  {
    const FreeName first = FreePath(directory.path(), "result", ".json");
    const FreeName second = FreePath(directory.path(), "result", ".json");
    EXPECT_NE(first.text, second.text);
  }
  EXPECT_TRUE(ListDirectory(directory.path())->empty());
}

TEST(ResultNames, NoPlaceIsNoEndlessSearch) {
  const TestDirectory directory;
  const FreeName name = FreePath(directory.Path("missing"), "result", ".json");
  EXPECT_FALSE(name.hold);
}

}  // namespace
}  // namespace plumbline::report
