#include "operators/convert_dumps.h"

#include <gtest/gtest.h>

#include "base/file/test_directory.h"

namespace plumbline::operators {
namespace {

using testing::TestDirectory;

// What has been converted holds what was written: a file that another program has since cut is not
// whole, and nobody asks for the size of one that was written just now.
TEST(ConvertJournal, OutputsHaveTheBytesThatWereWritten) {
  const TestDirectory directory;
  const std::string dump = directory.Path("Add.a.1.1.5"), output = directory.Path("a.npy");
  ASSERT_TRUE(WriteFileAtomically(dump, "dump", false));
  {
    auto journal = ConvertJournal::Open(directory.path(), "all");
    ASSERT_TRUE(journal) << journal.error().text;
    ASSERT_TRUE(journal->Add({dump, 4, *ModifiedAt(dump), {{output, 3}}}));
  }
  const auto is_done = [&](const std::string& wanted) {
    const auto journal = ConvertJournal::Open(directory.path(), wanted);
    return journal && journal->IsDone(dump);
  };
  EXPECT_FALSE(is_done("all"));
  ASSERT_TRUE(WriteFileAtomically(output, "ab", false));
  EXPECT_FALSE(is_done("all"));
  ASSERT_TRUE(WriteFileAtomically(output, "abc", false));
  EXPECT_TRUE(is_done("all"));
  EXPECT_FALSE(is_done("something else"));
}

}  // namespace
}  // namespace plumbline::operators
