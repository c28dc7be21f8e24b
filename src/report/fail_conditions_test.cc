#include "report/fail_conditions.h"

#include <gtest/gtest.h>

namespace plumbline::report {
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
  const MetConditions other_way = {.unmatched = true}, other = {.differs = true};
  EXPECT_TRUE(*MeetsAny(wrong, {"wrong"}));
  EXPECT_FALSE(*MeetsAny(wrong, {"unjudged"}));
  EXPECT_TRUE(*MeetsAny(unjudged, {"unjudged"}));
  EXPECT_FALSE(*MeetsAny(unjudged, {"wrong"}));
  EXPECT_FALSE(*MeetsAny(other_way, {"wrong", "unjudged"}));
  for (const MetConditions& each : {wrong, unjudged, other_way, other}) {
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
