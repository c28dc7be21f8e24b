#include "report/certainty.h"

#include <gtest/gtest.h>

namespace plumbline::report {

namespace {

using measure::DigestKind;

TEST(LimitText, HasTwoDigitsRoundedUp) {
  DetectionLimit limit;
  limit.result = 2.01e-5;
  limit.gradient = 0.02;
  EXPECT_EQ(
      LimitText(limit),
      "differences of a result below 0.0021 % and of a gradient below 2 % cannot be told from "
      "noise here");
}

TEST(LimitText, CountsWhatIsRoundingAlone) {
  DetectionLimit limit;
  limit.result = 1e-6;
  limit.roundings = 3;
  EXPECT_EQ(LimitText(limit),
            "differences of a result below 0.0001 % cannot be told from noise here; 3 values are "
            "rounding alone, of which nothing is told");
}

TEST(LimitText, OfEqualBitsThereIsNone) {
  EXPECT_EQ(LimitText({}), "no difference of a recorded value is taken for noise");
}

TEST(Certainty, OfDigestsIsThatOfTheirKind) {
  const auto of = [](DigestKind kind) { return CertaintyOf(CompareMode::kDigest, kind, {}); };
  EXPECT_EQ(of(DigestKind::kChecksum).level, "medium");
  EXPECT_EQ(of(DigestKind::kXor).level, "low");
  EXPECT_EQ(of(DigestKind::kLogged).level, "low");
  EXPECT_NE(of(DigestKind::kXor).text, of(DigestKind::kLogged).text);
}

TEST(Certainty, IsHighOnlyWhereTheLastUpdateWasSeen) {
  DetectionLimit limit;
  EXPECT_EQ(CertaintyOf(CompareMode::kTensor, DigestKind::kChecksum, limit).level, "high");
  EXPECT_EQ(CertaintyLine(CertaintyOf(CompareMode::kTensor, DigestKind::kChecksum, limit)), "");
  limit.lacks_last_update = true;
  EXPECT_EQ(CertaintyLine(CertaintyOf(CompareMode::kTensor, DigestKind::kChecksum, limit)),
            "  certainty: medium: every element was compared; what the optimizer made of the last "
            "gradients was not recorded\n");
}

}  // namespace

namespace {

TEST(FailConditions, OneMetConditionIsEnough) {
  const MetConditions met = {.wrong = true, .suspicious = true};
  EXPECT_TRUE(*MeetsAny(met, {"broken", "suspicious"}));
  EXPECT_TRUE(*MeetsAny(met, {"any"}));
  EXPECT_FALSE(*MeetsAny(met, {"broken", "unmatched", "unjudged"}));
  EXPECT_FALSE(*MeetsAny(met, {}));
}

TEST(FailConditions, ThreeGates) {
  const MetConditions wrong = {.wrong = true}, unjudged = {.unjudged = true};
  const MetConditions equivalent = {.unmatched = true}, other = {.differs = true};
  EXPECT_TRUE(*MeetsAny(wrong, {"wrong"}));
  EXPECT_FALSE(*MeetsAny(wrong, {"unjudged"}));
  EXPECT_TRUE(*MeetsAny(unjudged, {"unjudged"}));
  EXPECT_FALSE(*MeetsAny(unjudged, {"wrong"}));
  EXPECT_FALSE(*MeetsAny(equivalent, {"wrong", "unjudged"}));
  for (const MetConditions& each : {wrong, unjudged, equivalent, other}) {
    EXPECT_TRUE(*MeetsAny(each, {"any"}));
  }
  EXPECT_FALSE(*MeetsAny({}, {"any"}));
}

TEST(FailConditions, UnknownNameIsAnErrorEvenAfterAMetOne) {
  const Result<bool> result = MeetsAny({.wrong = true}, {"any", "brokn"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message().find("\"brokn\""), std::string::npos);
}

}  // namespace

}  // namespace plumbline::report
