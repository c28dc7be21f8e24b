#include "base/file_bytes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_directory.h"

namespace plumbline {
namespace {

std::string TextOf(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(FileBytes, SmallAndLargeFilesAreWhole) {
  const testing::TestDirectory directory;
  const std::string path = directory.Path("file");
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{122879}, size_t{122880}, size_t{122881}, size_t{3} << 20}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 % 251);
    ASSERT_TRUE(WriteFileAtomically(path, text, false));
    Result<FileBytes> file = FileBytes::Open(path);
    ASSERT_TRUE(file);
    const FileBytes moved = std::move(*file);
    EXPECT_TRUE(TextOf(moved) == text) << size;
  }
}

// The memory of a closed file serves the next one; that of an open one does not, on any thread.
TEST(FileBytes, OpenFilesHaveMemoryOfTheirOwn) {
  const testing::TestDirectory directory;
  const auto path = [&](size_t i) { return directory.Path("file" + std::to_string(i)); };
  const auto text = [](size_t i) {
    return std::string(1000 + i * 5000, static_cast<char>('a' + i));
  };
  constexpr size_t kFiles = 12;
  for (size_t i = 0; i < kFiles; ++i) ASSERT_TRUE(WriteFileAtomically(path(i), text(i), false));
  std::vector<FileBytes> open(kFiles);
  for (const size_t closed_every : {size_t{1}, size_t{2}, size_t{3}}) {
    for (size_t i = 0; i < kFiles; i += closed_every) open[i] = FileBytes();
    std::jthread([&] {
      for (size_t i = 0; i < kFiles; i += 2 * closed_every) open[i] = *FileBytes::Open(path(i));
    }).join();
    for (size_t i = 0; i < kFiles; ++i) {
      if (open[i].bytes().empty()) open[i] = *FileBytes::Open(path(i));
    }
    for (size_t i = 0; i < kFiles; ++i) EXPECT_TRUE(TextOf(open[i]) == text(i)) << i;
  }
}

TEST(FileBytes, WhatCannotBeReadIsAnError) {
  const testing::TestDirectory directory;
  const auto missing = FileBytes::Open(directory.Path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  const auto folder = FileBytes::Open(directory.Path(""));
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(folder.error().message().find("is a directory, not a regular file"), std::string::npos);
}

TEST(FileBytes, APipeWaitsForNobody) {
  const testing::TestDirectory directory;
  ASSERT_EQ(::mkfifo(directory.Path("pipe").c_str(), 0600), 0);
  const auto pipe = FileBytes::Open(directory.Path("pipe"));
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(pipe.error().message().find(": not a regular file"), std::string::npos);
}

TEST(HaveSameBytes, IsAboutBytes) {
  const testing::TestDirectory directory;
  const std::string a = directory.Path("a"), b = directory.Path("b");
  const std::string text((size_t{1} << 20) + 5, 'x');
  ASSERT_TRUE(WriteFileAtomically(a, text, false));
  ASSERT_TRUE(WriteFileAtomically(b, text, false));
  EXPECT_TRUE(HaveSameBytes(a, b));
  ASSERT_TRUE(WriteFileAtomically(b, text + "y", false));
  EXPECT_FALSE(HaveSameBytes(a, b));
  EXPECT_FALSE(HaveSameBytes(a, directory.Path("no")));
}

}  // namespace
}  // namespace plumbline
