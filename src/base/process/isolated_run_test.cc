#include "base/process/isolated_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace plumbline {
namespace {

TEST(RunIsolated, GivesTheStatusAndKeepsMemory) {
  int value = 1;
  const Result<int> status = RunIsolated([&] {
    value = 2;
    return 7;
  });
  ASSERT_TRUE(status);
  EXPECT_EQ(*status, 7);
  EXPECT_EQ(value, 1);
}

TEST(RunIsolated, ACrashIsAnError) {
  const Result<int> status = RunIsolated([]() -> int {
    ::signal(SIGABRT, SIG_DFL);
    std::abort();
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(status.error().message(), "ended by signal 6 (Aborted)");
}

TEST(RunIsolated, AKillIsAnError) {
  const Result<int> status = RunIsolated([] {
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("signal 9"), std::string::npos);
}

TEST(RunIsolated, HandsOverBytesOrAnError) {
  const auto made = RunIsolatedFor([]() -> Result<std::string> { return std::string(70000, 'x'); });
  ASSERT_TRUE(made && *made);
  EXPECT_EQ((*made)->size(), 70000U);
  EXPECT_EQ((*made)->back(), std::byte{'x'});
  const auto failed = RunIsolatedFor(
      []() -> Result<std::string> { return Error(ErrorCode::kUnsupported, "not this"); });
  ASSERT_TRUE(failed);
  ASSERT_FALSE(*failed);
  EXPECT_EQ(failed->error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(failed->error().message(), "not this");
  const auto crashed = RunIsolatedFor([]() -> Result<std::string> {
    ::signal(SIGSEGV, SIG_DFL);  // sanitizers handle it
    ::kill(::getpid(), SIGSEGV);
    return std::string();
  });
  ASSERT_FALSE(crashed);
  EXPECT_EQ(crashed.error().code(), ErrorCode::kCorrupt);
}

TEST(RunIsolatedDeathTest, AnInterruptOfTheWorkEndsTheProgram) {
  EXPECT_EXIT(
      {
        ::signal(SIGTERM, SIG_DFL);
        (void)RunIsolated([] {
          ::kill(::getpid(), SIGTERM);
          return 0;
        });
        ::_exit(0);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace plumbline
