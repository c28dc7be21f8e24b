#include "base/process/log.h"

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

TEST(Log, NothingATerminalActsOnStays) {
  EXPECT_EQ(OneLine("a\x1b[31mb"), "a_[31mb");
  EXPECT_EQ(OneLine("a\xC2\x9B"
                    "31m\xC2\x80\xC2\x9F"),
            "a_31m__");  // C1 as characters
  EXPECT_EQ(OneLine("a\x9B"
                    "31m\x80"),
            "a_31m_");  // and as bytes
  EXPECT_EQ(OneLine("\xE2\x80\xAE"
                    "a\xE2\x81\xA6"
                    "b\xE2\x80\x8F\xD8\x9C"),
            "_a_b__");  // bidi
  EXPECT_EQ(OneLine("a\xE2\x80\xA8"
                    "b\xE2\x80\xA9"),
            "a_b_");  // line separators
  EXPECT_EQ(OneLine("a\xED\xA0\x80"
                    "b"),
            "a_b");  // a lone surrogate
  EXPECT_EQ(OneLine("a\xEF\xBB\xBF"
                    "b"),
            "a_b");  // a byte order mark, which is not seen
}

TEST(Log, OtherCharactersStay) {
  for (const std::string_view text : {"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80", "\xC2\xA0",
                                      "\xE2\x80\x93\xE2\x9C\x9B", "\xFF", "\xED\x80\x80"}) {
    EXPECT_EQ(OneLine(text), text);
    EXPECT_EQ(ShownText(text), text);
  }
}

TEST(Log, TextsOfSeveralLinesKeepTheirLines) {
  EXPECT_EQ(ShownText("a\n\tb\r\x1b[0m\x9B%0a\n"), "a\n\tb__[0m_%0a\n");
  EXPECT_EQ(ShownText(""), "");
}

}  // namespace
}  // namespace plumbline
