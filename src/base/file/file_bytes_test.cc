#include "base/file/file_bytes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/file/test_directory.h"

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

TEST(SmallFile, APipeWaitsForNobody) {
  const testing::TestDirectory root;
  ASSERT_EQ(::mkfifo(root.Path("pipe").c_str(), 0600), 0);
  const auto directory = Directory::Open(root.path());
  ASSERT_TRUE(directory);
  std::array<std::byte, 8> buffer{};
  EXPECT_TRUE(ReadSmallFile(*directory, "pipe", buffer)->empty());
}

// File systems over a network give up a system call when a signal arrives.
TEST(SmallFile, InterruptsAreRetried) {
  const testing::TestDirectory root;
  std::ofstream(root.Path("seven")) << "1234567";
  const auto directory = Directory::Open(root.path());
  ASSERT_TRUE(directory);
  static SyscallTable real;
  real = Syscalls();
  static int opens, reads;
  opens = reads = 0;
  Syscalls().openat = [](int from, const char* path, int flags, mode_t mode) {
    errno = EINTR;
    return opens++ < 2 ? -1 : real.openat(from, path, flags, mode);
  };
  Syscalls().read = [](int fd, void* out, size_t size) {
    errno = EINTR;
    return reads++ < 2 ? ssize_t{-1} : real.read(fd, out, size);
  };
  std::array<std::byte, 8> buffer{};
  const auto seven = ReadSmallFile(*directory, "seven", buffer);
  Syscalls() = real;
  ASSERT_TRUE(seven) << seven.error().message();
  EXPECT_EQ(seven->size(), 7U);
  EXPECT_EQ(opens, 3);
  EXPECT_EQ(reads, 3);
}

TEST(SharedBytes, GrowingMemoryIsSeenByWhoeverMapsIt) {
  auto memory = SharedBytes::CreateGrowing();
  ASSERT_TRUE(memory);
  EXPECT_TRUE(memory->Map()->empty());
  ASSERT_TRUE(memory->Grow(100));
  ASSERT_EQ(memory->Map()->size(), 100U);
  (*memory->Map())[99] = std::byte{7};
  ASSERT_TRUE(memory->Grow(10));  // it has as much
  // The other side makes it larger.
  ASSERT_EQ(::ftruncate(memory->descriptor(), 1 << 20), 0);
  const auto mapped = memory->Map();
  ASSERT_EQ(mapped->size(), size_t{1} << 20);
  EXPECT_EQ((*mapped)[99], std::byte{7});
  EXPECT_EQ((*mapped)[(1 << 20) - 1], std::byte{0});
  ASSERT_TRUE(memory->Clear());
  EXPECT_EQ((*mapped)[99], std::byte{0});
  EXPECT_EQ(memory->Map()->size(), size_t{1} << 20);
}

TEST(SharedBytes, NobodyMakesGrowingMemorySmaller) {
  auto memory = SharedBytes::CreateGrowing();
  ASSERT_TRUE(memory && memory->Grow(4096));
  EXPECT_NE(::ftruncate(memory->descriptor(), 0), 0);
  EXPECT_EQ(memory->Map()->size(), 4096U);
  const SharedBytes moved = *std::move(memory);
  EXPECT_EQ(moved.Read()->size(), 4096U);
}

TEST(SharedBytes, MoreThanThereIsIsAnError) {
  auto memory = SharedBytes::CreateGrowing();
  ASSERT_TRUE(memory);
  EXPECT_FALSE(memory->Grow(size_t{1} << 60));
}

}  // namespace
}  // namespace plumbline
