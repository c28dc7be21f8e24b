#include "store/loss_record.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_directory.h"

namespace plumbline {
namespace {

using testing::FailingCalls;
using testing::TestDirectory;

class LossRecordTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Directory> Opened() {
    auto directory = Directory::Open(directory_.path());
    return directory ? std::make_shared<const Directory>(*std::move(directory)) : nullptr;
  }
  LossRecord Reserved() {
    auto record = LossRecord::Reserve(Opened());
    return record ? *std::move(record) : LossRecord();
  }
  std::string Log() { return ReadFile(directory_.Path("dump_error_info.log")).value_or("none"); }
  std::vector<std::string> Files() {
    return ListDirectory(directory_.path()).value_or(std::vector<std::string>{"?"});
  }

  ino_t Inode(const std::string& name) {
    struct stat info {};
    return ::stat(directory_.Path(name).c_str(), &info) == 0 ? info.st_ino : 0;
  }

  const TestDirectory directory_;
  const std::vector<Loss> losses_ = {{"records_dropped", 3, "no space"}};
};

TEST_F(LossRecordTest, LeavesNothingWhereNothingWasLost) {
  {
    const LossRecord record = Reserved();
    EXPECT_EQ(Files(), std::vector<std::string>{".dump_losses.tmp"});
    EXPECT_EQ(FileSize(directory_.Path(".dump_losses.tmp")).value_or(0), 4096U);
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(LossRecordTest, IsWrittenIntoTheSpaceItHas) {
  LossRecord record = Reserved();
  const ino_t before = Inode(".dump_losses.tmp");
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_EQ(Files(), std::vector<std::string>{"dump_error_info.log"});
  EXPECT_NE(Log().find("[ERROR] records_dropped: 3 (no space)\n"), std::string::npos) << Log();
  EXPECT_EQ(Inode("dump_error_info.log"), before);
  const std::vector<Loss> more = {{"calls_dropped", 1, std::string(300, 'x')}, losses_[0]};
  ASSERT_TRUE(record.Write(more));
  EXPECT_NE(Log().find("calls_dropped"), std::string::npos);
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_EQ(Log().find("calls_dropped"), std::string::npos);
  EXPECT_TRUE(Log().ends_with("(no space)\n")) << Log();
}

TEST_F(LossRecordTest, WhatCouldNotBeWrittenIsTriedAgainAtTheEnd) {
  {
    LossRecord record = Reserved();
    const auto pwrite = Syscalls().pwrite;
    Syscalls().pwrite = [](int, const void*, size_t, off_t) {
      errno = ENOSPC;
      return ssize_t{-1};
    };
    {
      const FailingCalls faults(0, ENOSPC, /*sticky=*/true);
      EXPECT_FALSE(record.Write(losses_));
    }
    Syscalls().pwrite = pwrite;
    EXPECT_EQ(Files(), std::vector<std::string>{".dump_losses.tmp"});
  }
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
}

TEST_F(LossRecordTest, WithoutSpaceOfItsOwnItIsAFileLikeOthers) {
  LossRecord record(Opened());
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
  EXPECT_FALSE(LossRecord().Write(losses_));
}

TEST_F(LossRecordTest, IsMadeAgainWhereItWasRemoved) {
  LossRecord record = Reserved();
  ASSERT_TRUE(record.Write(losses_));
  ASSERT_TRUE(RemoveFile(directory_.Path("dump_error_info.log")));
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
}

TEST_F(LossRecordTest, AForkedChildLeavesItAlone) {
  LossRecord record = Reserved();
  const pid_t child = ::fork();
  if (child == 0) {
    { const LossRecord gone = std::move(record); }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(Files(), std::vector<std::string>{".dump_losses.tmp"});
}

TEST_F(LossRecordTest, TheLastOneTakesLaterLosses) {
  LastLossRecord last;
  EXPECT_FALSE(last.Add({"steps_dropped", 1, "step 1"}));
  last.Keep(Reserved(), losses_);
  EXPECT_TRUE(last.Add({"steps_dropped", 1, "step 1"}));
  EXPECT_TRUE(last.Add({"steps_dropped", 1, "step 2"}));
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
  EXPECT_NE(Log().find("steps_dropped: 2 (step 2)"), std::string::npos);
  last.Drop();
  EXPECT_FALSE(last.Add({"steps_dropped", 1, "step 3"}));
}

}  // namespace
}  // namespace plumbline
