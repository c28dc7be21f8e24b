#include "view/values/value_answers.h"

#include <gtest/gtest.h>

namespace plumbline::view {
namespace {

TEST(ValueAnswers, NothingRecordedSaysHowToRecord) {
  const auto answer = ValueAnswer({}, "stats", Parameters());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(answer.error().message().find("\"tensor\""), std::string::npos);
}

}  // namespace
}  // namespace plumbline::view
