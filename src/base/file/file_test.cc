#include "base/file/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/file/directory.h"
#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using testing::FailingCalls;
using testing::OpenDescriptors;
using testing::TestDirectory;

std::string Text(const std::string& path) { return ReadFile(path).value_or("<unreadable>"); }

TEST(File, WritesWhatWasGivenWithMode0640) {
  const TestDirectory dir;
  auto file = File::Create(dir.Path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write("hello "));
  ASSERT_TRUE(file->Write("world"));
  ASSERT_TRUE(file->Close());
  EXPECT_EQ(Text(dir.Path("a")), "hello world");
  struct stat info {};
  ASSERT_EQ(::stat(dir.Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777 & ~0640U, 0U);
}

TEST(File, ShortWritesAndInterruptsAreContinued) {
  const TestDirectory dir;
  auto file = File::Create(dir.Path("a"));
  ASSERT_TRUE(file);
  const SyscallTable real = Syscalls();
  static int calls;
  calls = 0;
  Syscalls().write = [](int fd, const void* bytes, size_t size) -> ssize_t {
    if (calls++ % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    return ::write(fd, bytes, std::min<size_t>(size, 3));
  };
  const Status written = file->Write("0123456789");
  Syscalls() = real;
  ASSERT_TRUE(written);
  EXPECT_EQ(Text(dir.Path("a")), "0123456789");
}

TEST(File, FullDiskIsAnIoErrorNamingPathAndSize) {
  const TestDirectory dir;
  auto file = File::Create(dir.Path("a"));
  ASSERT_TRUE(file);
  const FailingCalls faults(0, ENOSPC);
  const Status status = file->Write("0123456789");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kIo);
  EXPECT_NE(status.error().message().find(dir.Path("a")), std::string::npos);
  EXPECT_NE(status.error().message().find("10 bytes"), std::string::npos);
  EXPECT_NE(status.error().message().find("No space left"), std::string::npos);
}

TEST(File, SizeLimitIsAnIoError) {
  const TestDirectory dir;
  auto file = File::Create(dir.Path("a"));
  ASSERT_TRUE(file);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = file->Write(std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kIo);
}

TEST(File, MissingFileIsNotFound) {
  const auto file = File::OpenRead("/nonexistent/plumbline");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kNotFound);
}

TEST(File, LockIsExclusiveBetweenDescriptors) {
  const TestDirectory dir;
  auto first = File::OpenAppend(dir.Path("lock"));
  auto second = File::OpenAppend(dir.Path("lock"));
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->TryLock().value_or(false));
  EXPECT_FALSE(second->TryLock().value_or(true));
  ASSERT_TRUE(first->Close());
  EXPECT_TRUE(second->TryLock().value_or(false));
}

TEST(File, ReplacedFileIsNoLongerOpenAsItsPath) {
  const TestDirectory dir;
  const auto file = File::Create(dir.Path("a"));
  ASSERT_TRUE(file);
  const auto directory = Directory::Open(dir.path());
  ASSERT_TRUE(directory);
  EXPECT_TRUE(directory->Holds("a", *file));
  ASSERT_TRUE(RenameFile(dir.Path("a"), dir.Path("b")));
  EXPECT_FALSE(directory->Holds("a", *file));
  ASSERT_TRUE(WriteFileAtomically(dir.Path("a"), "new", false));
  EXPECT_FALSE(directory->Holds("a", *file));
}

TEST(MappedFile, EmptyFileMapsToEmptySpan) {
  const TestDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir.Path("empty"), "", false));
  const auto mapped = MappedFile::Open(dir.Path("empty"));
  ASSERT_TRUE(mapped);
  EXPECT_TRUE((*mapped)->bytes().empty());
}

// Without the check, opening would wait for a writer for ever.
TEST(MappedFile, APipeIsRefusedAtOnce) {
  const TestDirectory dir;
  const std::string path = dir.Path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0640), 0);
  EXPECT_EQ(MappedFile::Open(path).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadStart(path, 4).error().code(), ErrorCode::kInvalidArgument);
}

TEST(MappedFile, DirectoryIsRefused) {
  const TestDirectory dir;
  EXPECT_FALSE(MappedFile::Open(dir.path()));
  EXPECT_FALSE(ReadFile(dir.path()));
}

TEST(AtomicFile, WithoutCommitNothingAppearsAndNothingRemains) {
  const TestDirectory dir;
  {
    auto file = AtomicFile::Create(dir.Path("a"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write(std::string_view("half")));
    EXPECT_EQ(KindOf(dir.Path("a")), PathKind::kMissing);
  }
  EXPECT_TRUE(ListDirectory(dir.path())->empty());
}

TEST(AtomicFile, AMissingDirectoryIsSaidWithThePathThatWasAsked) {
  const TestDirectory dir;
  const auto file = AtomicFile::Create(dir.Path("none/a"));
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(file.error().message().starts_with(dir.Path("none/a") + ": cannot create"))
      << file.error().message();
}

TEST(AtomicFile, WritersOfOnePathDoNotMeet) {
  const TestDirectory dir;
  auto first = AtomicFile::Create(dir.Path("a"));
  auto second = AtomicFile::Create(dir.Path("a"));
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first->Write(std::string_view("first")));
  ASSERT_TRUE(second->Write(std::string_view("second")));
  ASSERT_TRUE(second->Commit(false));
  ASSERT_TRUE(first->Commit(false));
  EXPECT_EQ(Text(dir.Path("a")), "first");
  EXPECT_EQ(ListDirectory(dir.path())->size(), 1U);
}

TEST(AtomicFile, LongestNameHasATemporary) {
  const TestDirectory dir;
  const std::string path = dir.Path(std::string(255, 'n'));
  ASSERT_TRUE(WriteFileAtomically(path, "x", false));
  EXPECT_EQ(Text(path), "x");
}

TEST(NameHold, IsHeldOnceAndLeavesNothing) {
  const TestDirectory dir;
  {
    const auto first = NameHold::Make(dir.Path("a"));
    ASSERT_TRUE(first && *first);
    const auto second = NameHold::Make(dir.Path("a"));
    ASSERT_TRUE(second);
    EXPECT_FALSE(*second);
    EXPECT_EQ(KindOf(dir.Path("a")), PathKind::kFile);
  }
  EXPECT_EQ(KindOf(dir.Path("a")), PathKind::kMissing);
  EXPECT_EQ(NameHold::Make(dir.Path("no/a")).error().code(), ErrorCode::kNotFound);
}

// Every system call of an atomic replacement fails once.
TEST(AtomicFile, AnyFailingCallKeepsTheOldFileAndLeavesNoTemporary) {
  for (const bool durable : {false, true}) {
    bool succeeded = false;
    for (int n = 0; !succeeded; ++n) {
      ASSERT_LT(n, 50);
      const TestDirectory dir;
      ASSERT_TRUE(WriteFileAtomically(dir.Path("a"), "old", false));
      const size_t descriptors = OpenDescriptors();
      Status status;
      bool renamed = false;
      {
        const FailingCalls faults(n, ENOSPC);
        status = WriteFileAtomically(dir.Path("a"), "new", durable);
        succeeded = !FailingCalls::fired();
      }
      renamed = Text(dir.Path("a")) == "new";
      EXPECT_EQ(OpenDescriptors(), descriptors) << n;
      EXPECT_EQ(ListDirectory(dir.path())->size(), 1U) << n;
      if (succeeded) {
        EXPECT_TRUE(status);
        EXPECT_TRUE(renamed);
        continue;
      }
      ASSERT_FALSE(status) << n;
      EXPECT_NE(status.error().message().find("No space left"), std::string::npos);
      // Only the sync of the directory comes after the rename.
      EXPECT_TRUE(renamed || Text(dir.Path("a")) == "old") << n;
      EXPECT_TRUE(durable || !renamed) << n;
    }
  }
}

TEST(MakeDirectories, CreatesMissingParentsAndAcceptsExistingOnes) {
  const TestDirectory dir;
  EXPECT_TRUE(MakeDirectories(dir.Path("a/b//c/")));
  EXPECT_EQ(KindOf(dir.Path("a/b/c")), PathKind::kDirectory);
  EXPECT_TRUE(MakeDirectories(dir.Path("a/b/c")));
}

TEST(MakeDirectories, FileInTheWayIsAnError) {
  const TestDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir.Path("a"), "", false));
  EXPECT_FALSE(MakeDirectories(dir.Path("a/b")));
  EXPECT_FALSE(MakeDirectories(dir.Path("a")));
  EXPECT_FALSE(MakeDirectories(""));
}

TEST(LinkFile, NoLinksHereIsUnsupported) {
  const TestDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir.Path("a"), "x", false));
  {
    const FailingCalls faults(0, EPERM);
    const Status status = LinkFile(dir.Path("a"), dir.Path("b"));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kUnsupported);
  }
  EXPECT_TRUE(LinkFile(dir.Path("a"), dir.Path("b")));
  EXPECT_EQ(Text(dir.Path("b")), "x");
}

TEST(Inspect, SeesTheLinkItself) {
  const TestDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir.Path("a"), "xyz", false));
  ASSERT_EQ(::symlink("a", dir.Path("l").c_str()), 0);
  const auto link = Inspect(dir.Path("l"));
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->is_link);
  EXPECT_EQ(link->kind, PathKind::kOther);
  const auto file = Inspect(dir.Path("a"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->kind, PathKind::kFile);
  EXPECT_EQ(file->size_bytes, 3U);
  EXPECT_TRUE(file->is_own);
  EXPECT_FALSE(Inspect(dir.Path("missing")));
}

TEST(AbsolutePath, ResolvesDotsWithoutTouchingTheDisk) {
  EXPECT_EQ(AbsolutePath("/a/./b/../c/").value_or(""), "/a/c");
  const std::string relative = AbsolutePath("out").value_or("");
  EXPECT_EQ(relative.front(), '/');
  EXPECT_TRUE(relative.ends_with("/out"));
}

TEST(Paths, PiecesOfPaths) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(BaseName("a/b.c"), "b.c");
  EXPECT_EQ(BaseName("b"), "b");
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("/b"), "/");
  EXPECT_EQ(DirectoryOf("b"), ".");
}

}  // namespace
}  // namespace plumbline
