#include "precheck/outcome.h"

#include <gtest/gtest.h>

namespace plumbline::precheck::outcome_test {
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
  for (int i = 0; i <= static_cast<int>(SkipCause::kOther); ++i) {
    const auto cause = static_cast<SkipCause>(i);
    EXPECT_EQ(ParseCause(CauseName(cause)), cause);
    const Skip read = ParseSkip(Skip{cause, "a: b"}.Text());
    EXPECT_EQ(read.cause, cause);
    EXPECT_EQ(read.detail, "a: b");
  }
  EXPECT_EQ(ParseSkip("timeout").cause, SkipCause::kOther);
  EXPECT_EQ(ParseSkip("what went wrong: all").detail, "what went wrong: all");
}

TEST(Outcome, AFailureOfTheDeviceAloneIsTold) {
  for (const SkipCause cause : {SkipCause::kCrashed, SkipCause::kTimeout}) {
    EXPECT_FALSE(IsDeviceFailure({cause, "the executor ended"}));
    EXPECT_TRUE(IsDeviceFailure(OnDevice({cause, "the executor ended"})));
    EXPECT_TRUE(IsDeviceFailure(ParseSkip(OnDevice({cause, "the executor ended"}).Text())));
  }
  EXPECT_TRUE(IsDeviceFailure({SkipCause::kDeviceFailed, "RuntimeError"}));
  EXPECT_FALSE(IsDeviceFailure({SkipCause::kCpuFailed, "RuntimeError"}));
  EXPECT_FALSE(IsDeviceFailure(OnDevice({SkipCause::kOutOfMemory, "no room"})));
}

}  // namespace
}  // namespace plumbline::precheck::outcome_test
