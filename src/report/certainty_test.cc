#include "report/certainty.h"

#include <gtest/gtest.h>

namespace plumbline::report {
namespace {

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

TEST(Certainty, IsHighOnlyWhereTheLastUpdateWasSeen) {
  DetectionLimit limit;
  EXPECT_EQ(CertaintyOf(CompareMode::kTensor, false, limit).level, "high");
  EXPECT_EQ(CertaintyLine(CertaintyOf(CompareMode::kTensor, false, limit)), "");
  limit.lacks_last_update = true;
  EXPECT_EQ(CertaintyLine(CertaintyOf(CompareMode::kTensor, false, limit)),
            "  certainty: medium: every element was compared; what the optimizer made of the last "
            "gradients was not recorded\n");
}

}  // namespace
}  // namespace plumbline::report
