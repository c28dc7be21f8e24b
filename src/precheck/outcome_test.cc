#include "precheck/outcome.h"

#include <gtest/gtest.h>

namespace plumbline::precheck {
namespace {

TEST(Outcome, AnErrorIsWorseThanTheWarningBehindIt) {
  EXPECT_EQ(Worst({Status::kError, Status::kWarning}), Status::kError);
  EXPECT_EQ(Worst({Status::kPass, Status::kSkip, Status::kWarning}), Status::kWarning);
}

TEST(Outcome, NothingJudgedIsNoPass) {
  EXPECT_EQ(Worst({Status::kSkip, Status::kSkip}), Status::kSkip);
  EXPECT_EQ(Worst({}), Status::kNone);
}

TEST(Outcome, WordsOfBothReleasesAreRead) {
  EXPECT_EQ(ParseStatus("warning"), Status::kWarning);
  EXPECT_EQ(ParseStatus("Warning"), Status::kWarning);
  EXPECT_EQ(ParseStatus("skip"), Status::kSkip);
  EXPECT_EQ(ParseStatus(" "), Status::kNone);
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
