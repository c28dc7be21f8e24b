// What the parts of a batch come to together: pairs of small dumps.

#include "pipeline/culprit/part_totals.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/culprit/parts_for_test.h"

namespace plumbline {
namespace {

using PartTotalsTest = PartsTest;

TEST_F(PartTotalsTest, SumsOfAllPartsAreRight) {
  Record(kInTwo, target_);
  Record(kInOne, golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(PartTotalsTest, MeansOfAllPartsAreRight) {
  Record({{kFirst, 4, 3.1, 0.5}, {kSecond, 4, 2.1, 0.5}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  EXPECT_EQ(Named(), "");
}

TEST_F(PartTotalsTest, TheFirstCallOfAPartThatDiffersIsNamedWhereTheSumOfAllDoes) {
  std::vector<Part> parts = kInTwo;
  parts[1].scale = 0.55;
  parts[1].loss = 9;
  Record(parts, target_);
  Record(kInOne, golden_);
  RecordStep(1.1, target_);
  RecordStep(1, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Torch.tanh.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "unexplained");
  EXPECT_EQ(comparison.first_wrong_call->confidence, "low");
}

// The loss itself: other labels.
TEST_F(PartTotalsTest, ALossThatDoesNotAddUpIsNamed) {
  std::vector<Part> parts = kInTwo;
  parts[1].loss = 11;
  Record(parts, target_);
  Record(kInOne, golden_);
  RecordStep(1.1, target_);
  RecordStep(1, golden_);
  EXPECT_EQ(Named(), "Functional.loss.0.forward");
}

// Gradients of a part that are thrown away before the next show in their sum alone.
TEST_F(PartTotalsTest, WhereNoSumIsReadTheFirstLineSaysSo) {
  constexpr std::string_view kUnread = "nothing recorded reads the gradients of all parts";
  Record(kInTwo, target_);
  Record(kInOne, golden_);
  EXPECT_NE(SummaryText(Compare()).find(kUnread), std::string::npos);
  RecordStep(1, target_);
  RecordStep(1, golden_);
  EXPECT_EQ(SummaryText(Compare()).find(kUnread), std::string::npos);
}

// A cast that no recorder sees: norms of bfloat16 numbers and of the same as float32 differ in
// their last digits.
TEST_F(PartTotalsTest, PartsAreFollowedThroughACastToAWiderType) {
  const auto record = [](const std::vector<Part>& parts, DumpForTest& side) {
    Record(parts, side, false, "bfloat16");
    int k = 0;
    for (const Part& part : parts) {
      Numbers wide = Times(part.data, part.scale);
      wide.norm *= 1 + 1e-6;
      const std::string shape = fmt::format("[{}, 3]", part.samples);
      side.Add(fmt::format("Torch.exp.{}.forward", k++), Values(wide, shape),
               Values(Times(part.data, 0.3), shape));
    }
    RecordStep(1, side);
  };
  record(kInTwo, target_);
  record(kInOne, golden_);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->name;
  for (const ComparedCall& call : comparison.calls) {
    EXPECT_EQ(call.unmatched_reason, call.name() == "Tensor.mul.0.forward" ? "" : "other-batch")
        << call.name();
  }
}

TEST_F(PartTotalsTest, WithoutGradientsWhatNoRoundingExplainsIsNamed) {
  for (const double scale : {0.5, 0.55}) {
    DumpForTest target(directory_.Path(fmt::format("target{}", scale)));
    DumpForTest golden(directory_.Path(fmt::format("golden{}", scale)));
    std::vector<Part> parts = kInTwo;
    parts[1].scale = scale;
    Record(parts, target, /*has_backward=*/false);
    Record(kInOne, golden, /*has_backward=*/false);
    const Result<Comparison> comparison = CompareRuns(target.Write(), golden.Write(), {});
    ASSERT_TRUE(comparison);
    EXPECT_EQ(comparison->first_wrong_call.has_value(), scale != 0.5);
  }
}

}  // namespace
}  // namespace plumbline
