#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>

namespace plumbline {
namespace {

// What `act` prints to stdout.
template <class Act>
std::string Printed(const Act& act) {
  ::testing::internal::CaptureStdout();
  act();
  return ::testing::internal::GetCapturedStdout();
}

TEST(Log, LevelSettingsAndTheirFallback) {
  EXPECT_EQ(ParseLogLevel("0"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("4"), LogLevel::kSilent);
  for (const char* setting : {static_cast<const char*>(nullptr), "", "5", "-1", "10", "warning"}) {
    EXPECT_EQ(ParseLogLevel(setting), LogLevel::kInfo);
  }
}

TEST(Log, LineHasTimePidLevelAndText) {
  SetLogLevel(LogLevel::kInfo);
  const std::string line = Printed([] { LogInfo("hello"); });
  const std::string pid = std::to_string(::getpid());
  EXPECT_TRUE(std::regex_match(
      line, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \()" + pid + R"(\) \[INFO\] hello\n)")))
      << line;
}

TEST(Log, RankIsShownOnceKnown) {
  SetLogLevel(LogLevel::kInfo);
  SetLogRank(3);
  const std::string line = Printed([] { LogWarning("w"); });
  SetLogRank(std::nullopt);
  EXPECT_NE(line.find(") [rank 3] [WARNING] w\n"), std::string::npos) << line;
}

TEST(Log, LowerLevelsAreSilent) {
  SetLogLevel(LogLevel::kError);
  EXPECT_EQ(Printed([] {
              LogDebug("d");
              LogInfo("i");
              LogWarning("w");
            }),
            "");
  EXPECT_NE(Printed([] { LogError("e"); }), "");
  SetLogLevel(LogLevel::kSilent);
  EXPECT_EQ(Printed([] { LogError("e"); }), "");
  SetLogLevel(LogLevel::kInfo);
}

TEST(Log, BracesInTextAreNotAFormat) {
  SetLogLevel(LogLevel::kInfo);
  EXPECT_NE(Printed([] { LogInfo("{} {0} %s"); }).find("{} {0} %s"), std::string::npos);
}

TEST(Log, ControlCharactersCannotForgeALine) {
  EXPECT_EQ(OneLine("a\nb\rc\td\be\ff\vg\x7fh"), "a_b_c_d_e_f_g_h");
  EXPECT_EQ(OneLine("a%0ab%0dc%7fd%08e%0bf%0cg"), "a_b_c_d_e_f_g");
  EXPECT_EQ(OneLine("100% of %0"), "100% of %0");
  EXPECT_EQ(OneLine(""), "");
}

}  // namespace
}  // namespace plumbline
