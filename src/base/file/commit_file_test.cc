#include "base/file/commit_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/file/test_directory.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string ReadAll(const CommitFile& file) {
  std::string text(file.size(), '?');
  EXPECT_TRUE(file.Read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

class CommitFileTest : public ::testing::Test {
 protected:
  // "aaaa", committed.
  CommitFile MakeFile() {
    Result<CommitFile> file = CommitFile::Create(path_);
    EXPECT_TRUE(file && file->Write(0, BytesOf("aaaa")) && file->Commit());
    return *std::move(file);
  }

  // "aaaa", and a complete file of changes that make it "bbbb" but were not carried out.
  void MakeInterrupted() {
    { MakeFile(); }
    ASSERT_TRUE(testing::DiesInWrite(1, [&] {
      Result<CommitFile> file = CommitFile::OpenUpdate(path_);
      if (!file->Write(0, BytesOf("bbbb")) || !file->Commit()) ::abort();
    }));
    ASSERT_GT(FileSize(changes_).value(), 0U);
  }

  testing::TestDirectory directory_;
  std::string path_ = directory_.Path("x.h5");
  std::string changes_ = CommitFile::ChangesPath(path_);
};

TEST_F(CommitFileTest, AppearsAtTheFirstCommit) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old", false));
  Result<CommitFile> file = CommitFile::Create(path_);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write(0, BytesOf("new contents")));
  EXPECT_EQ(ReadFile(path_).value(), "old");
  ASSERT_TRUE(file->Commit());
  EXPECT_EQ(ReadFile(path_).value(), "new contents");
}

TEST_F(CommitFileTest, LeavesNothingWithoutACommit) {
  {
    Result<CommitFile> file = CommitFile::Create(path_);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write(0, BytesOf("x")));
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(CommitFileTest, CommittedBytesWaitForTheNextCommit) {
  CommitFile file = MakeFile();
  ASSERT_TRUE(file.Write(2, BytesOf("bbbb")));
  EXPECT_EQ(ReadAll(file), "aabbbb");
  EXPECT_EQ(ReadFile(path_).value(), "aaaabb");  // the appended part is there already
  ASSERT_TRUE(file.Commit());
  EXPECT_EQ(ReadFile(path_).value(), "aabbbb");
}

TEST_F(CommitFileTest, ChangesOverPagesAndBeyondTheEnd) {
  CommitFile file = MakeFile();
  const std::string start(10000, 's');
  ASSERT_TRUE(file.Write(0, BytesOf(start)));
  ASSERT_TRUE(file.Commit());
  const std::string middle(9000, 'm');
  ASSERT_TRUE(file.Write(4000, BytesOf(middle)));
  ASSERT_TRUE(file.Extend(14000));
  const std::string expected = start.substr(0, 4000) + middle + std::string(1000, '\0');
  EXPECT_EQ(ReadAll(file), expected);
  ASSERT_TRUE(file.Commit());
  EXPECT_EQ(ReadFile(path_).value(), expected);
}

TEST_F(CommitFileTest, WithoutACommitTheFileIsAsBefore) {
  {
    CommitFile file = MakeFile();
    ASSERT_TRUE(file.Write(1, BytesOf("bbbbbb")));
  }
  EXPECT_EQ(ReadFile(path_).value(), "aaaa");
}

TEST_F(CommitFileTest, OnlyOneWriter) {
  const CommitFile file = MakeFile();
  const Result<CommitFile> second = CommitFile::OpenUpdate(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(CommitFileTest, EveryInterruptedWriteLeavesACommit) {
  const std::string states[] = {std::string(5000, 'a'), std::string(9000, 'b'),
                                std::string(9000, 'c')};
  for (int write = 0; write < 100; ++write) {
    { ASSERT_TRUE(WriteFileAtomically(path_, "old", false)); }
    const bool died = testing::DiesInWrite(write, [&] {
      Result<CommitFile> file = CommitFile::Create(path_);
      for (const std::string& state : states) {
        if (!file->Write(0, BytesOf(state)) || !file->Commit()) ::abort();
      }
    });
    std::string seen;
    {
      const Result<CommitFile> file = CommitFile::OpenRead(path_);
      ASSERT_TRUE(file);
      seen = ReadAll(*file);
    }
    // Bytes of an unfinished commit may lie behind.
    const bool is_commit = seen == "old" || std::any_of(std::begin(states), std::end(states),
                                                        [&](const std::string& state) {
                                                          return seen.starts_with(state);
                                                        });
    EXPECT_TRUE(is_commit) << "write " << write;
    { ASSERT_TRUE(CommitFile::OpenUpdate(path_)); }
    EXPECT_EQ(ReadFile(path_).value(), seen) << "write " << write;
    if (!died) {
      EXPECT_GT(write, 6);
      EXPECT_EQ(seen, states[2]);
      return;
    }
  }
  FAIL() << "never came to its end";
}

TEST_F(CommitFileTest, AForkedProcessWritesNothing) {
  CommitFile file = MakeFile();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool wrote = file.Write(4, BytesOf("bbbb")).has_value();
    { const CommitFile gone = std::move(file); }
    ::_exit(wrote ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadFile(path_).value(), "aaaa");
  EXPECT_TRUE(fs::exists(changes_));  // the lock of the file that is still being written
}

TEST_F(CommitFileTest, ChangesOfAnotherFileAreLeftAlone) {
  MakeInterrupted();
  ASSERT_TRUE(WriteFileAtomically(path_, "another file", false));
  const Result<CommitFile> other = CommitFile::OpenRead(path_);
  ASSERT_TRUE(other);
  EXPECT_EQ(ReadAll(*other), "another file");
}

// A writer that gives up before it has carried the changes of a killed one out leaves them.
TEST_F(CommitFileTest, AFailedOpeningKeepsInterruptedChanges) {
  for (const bool creates : {false, true}) {
    MakeInterrupted();
    for (int call = 0;; ++call) {
      ASSERT_LT(call, 100);
      const bool opened = [&] {
        const testing::FailingCalls faults(call);
        return creates ? CommitFile::Create(path_).has_value()
                       : CommitFile::OpenUpdate(path_).has_value();
      }();
      const Result<CommitFile> file = CommitFile::OpenRead(path_);
      ASSERT_TRUE(file) << "call " << call;
      EXPECT_EQ(ReadAll(*file), "bbbb") << "call " << call;
      if (opened) break;
    }
  }
}

TEST_F(CommitFileTest, ALockOfARemovedFileIsNone) {
  static std::optional<CommitFile> first;
  static SyscallTable real;
  first.emplace(MakeFile());
  real = Syscalls();
  // The first writer ends, and removes its file of changes, when the second one has just opened it.
  Syscalls().openat = [](int from, const char* path, int flags, mode_t mode) {
    const int fd = real.openat(from, path, flags, mode);
    if (std::string_view(path).ends_with(".commit")) first.reset();
    return fd;
  };
  const Result<CommitFile> second = CommitFile::OpenUpdate(path_);
  Syscalls() = real;
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_TRUE(fs::exists(changes_));
  const Result<CommitFile> third = CommitFile::OpenUpdate(path_);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(CommitFileTest, RemovesOnlyItsOwnFileOfChanges) {
  {
    const CommitFile file = MakeFile();
    ASSERT_TRUE(WriteFileAtomically(changes_, "another writer's", false));
  }
  EXPECT_EQ(ReadFile(changes_).value(), "another writer's");
}

}  // namespace
}  // namespace plumbline
