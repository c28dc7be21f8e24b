#include "report/fail_conditions.h"

#include <gtest/gtest.h>

namespace plumbline::report {
namespace {

TEST(FailConditions, OneMetConditionIsEnough) {
  const MetConditions met = {true, false, false, true};  // suspicious, any
  EXPECT_TRUE(*MeetsAny(met, {"broken", "suspicious"}));
  EXPECT_TRUE(*MeetsAny(met, {"any"}));
  EXPECT_FALSE(*MeetsAny(met, {"broken", "unmatched"}));
  EXPECT_FALSE(*MeetsAny(met, {}));
}

TEST(FailConditions, UnknownNameIsAnErrorEvenAfterAMetOne) {
  const Result<bool> result = MeetsAny({true, true, true, true}, {"any", "brokn"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message().find("\"brokn\""), std::string::npos);
}

}  // namespace
}  // namespace plumbline::report
