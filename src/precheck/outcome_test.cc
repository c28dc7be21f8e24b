#include "precheck/outcome.h"

#include <gtest/gtest.h>

namespace plumbline::precheck {
namespace {

TEST(Outcome, AnErrorIsWorseThanTheWarningBehindIt) {
  EXPECT_EQ(Worst({CheckStatus::kError, CheckStatus::kWarning}), CheckStatus::kError);
  EXPECT_EQ(Worst({CheckStatus::kPass, CheckStatus::kSkip, CheckStatus::kWarning}),
            CheckStatus::kWarning);
}

TEST(Outcome, NothingJudgedIsNoPass) {
  EXPECT_EQ(Worst({CheckStatus::kSkip, CheckStatus::kSkip}), CheckStatus::kSkip);
  EXPECT_EQ(Worst({}), CheckStatus::kNone);
}

TEST(Outcome, WordsOfBothReleasesAreRead) {
  EXPECT_EQ(ParseStatus("warning"), CheckStatus::kWarning);
  EXPECT_EQ(ParseStatus("Warning"), CheckStatus::kWarning);
  EXPECT_EQ(ParseStatus("skip"), CheckStatus::kSkip);
  EXPECT_EQ(ParseStatus(" "), CheckStatus::kNone);
  EXPECT_EQ(ParseStatus("TRUE"), std::nullopt);
}

TEST(Outcome, EveryCauseHasItsOwnName) {
  EXPECT_EQ((Skip{SkipCause::kTimeout, "no answer within 600 s"}).Text(),
            "timeout: no answer within 600 s");
  for (int i = 0; i < static_cast<int>(SkipCause::kNoCounterpart); ++i) {
    EXPECT_NE(CauseName(static_cast<SkipCause>(i)), CauseName(static_cast<SkipCause>(i + 1)));
  }
}

}  // namespace
}  // namespace plumbline::precheck
