#include "base/file/text_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

TEST(TextFile, HoldsEverythingInOrder) {
  const TestDirectory directory;
  const std::string path = JoinPath(directory.path(), "rows.csv");
  std::string expected;
  auto file = TextFile::Create(path);
  ASSERT_TRUE(file);
  for (int i = 0; i < 300'000; ++i) {
    const std::string row = "row " + std::to_string(i) + "\n";
    expected += row;
    file->text() += row;
    ASSERT_TRUE(file->Flush());
    // What waits in memory stays far below the size of the file.
    ASSERT_LT(file->text().size(), (size_t{1} << 20) + row.size());
  }
  EXPECT_EQ(KindOf(path), PathKind::kMissing);
  ASSERT_TRUE(file->Close());
  EXPECT_EQ(ReadFile(path).value(), expected);
}

TEST(TextFile, EmptyFile) {
  const TestDirectory directory;
  const std::string path = JoinPath(directory.path(), "empty.csv");
  auto file = TextFile::Create(path);
  ASSERT_TRUE(file && file->Close());
  EXPECT_EQ(ReadFile(path).value(), "");
}

TEST(TextFile, NothingIsLeftWithoutClose) {
  const TestDirectory directory;
  {
    auto file = TextFile::Create(JoinPath(directory.path(), "rows.csv"));
    ASSERT_TRUE(file);
    file->text().assign(size_t{3} << 20, 'x');
    ASSERT_TRUE(file->Flush());
  }
  EXPECT_TRUE(ListDirectory(directory.path()).value().empty());
}

TEST(TextFile, PiecesOfEverySizeStandInTheirOrder) {
  const TestDirectory directory;
  const std::string path = JoinPath(directory.path(), "rows.csv");
  auto file = TextFile::Create(path);
  ASSERT_TRUE(file);
  std::string expected = "head\n";
  file->text() += expected;
  size_t i = 0;
  for (const size_t size : {3U, 900'000U, 200'000U, 0U, 2'000'000U, 1U}) {
    const std::string piece(size, static_cast<char>('a' + i++));
    expected += piece;
    ASSERT_TRUE(file->Write(piece));
  }
  file->text() += "end";
  ASSERT_TRUE(file->Close());
  EXPECT_TRUE(ReadFile(path).value() == expected + "end");
}

TEST(TextFile, FullDiskIsAnErrorAndLeavesNothing) {
  const TestDirectory directory;
  {
    auto file = TextFile::Create(JoinPath(directory.path(), "rows.csv"));
    ASSERT_TRUE(file);
    auto* const write = Syscalls().write;
    Syscalls().write = [](int, const void*, size_t) -> ssize_t {
      errno = ENOSPC;
      return -1;
    };
    file->text() = "row\n";
    const Status closed = file->Close();
    Syscalls().write = write;
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code(), ErrorCode::kIo);
  }
  EXPECT_TRUE(ListDirectory(directory.path()).value().empty());
}

}  // namespace
}  // namespace plumbline
