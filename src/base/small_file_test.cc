#include "base/small_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
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

}  // namespace
}  // namespace plumbline
