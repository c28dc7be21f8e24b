// What the parts of a batch come to together: pairs of small dumps.

#include "pipeline/culprit/part_totals.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

struct Numbers {
  double max, min, mean, norm;
};

std::string Values(const Numbers& of, const std::string& shape,
                   const std::string& dtype = "float32") {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.{}", "shape": {}, )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false}})",
                     dtype, shape, of.max, of.min, of.mean, of.norm);
}
std::string Scalar(double value) { return Values({value, value, value, value}, "[]"); }

// One batch of eight samples and its halves: 10^2 = 8^2 + 6^2.
constexpr Numbers kWhole{4, -3, 0.5, 10}, kFirst{4, -2, 0.75, 8}, kSecond{1, -3, 0.25, 6};

Numbers Times(const Numbers& of, double factor) {
  return {of.max * factor, of.min * factor, of.mean * factor, of.norm * factor};
}

// A part: its data, its loss, and the weight of that.
struct Part {
  Numbers data;
  int samples;
  double loss, weight;
  double scale = 0.5;  // what the layer multiplies with
};

class PartTotalsTest : public TwoDumpsTest {
 protected:
  // A layer, its loss, the weight and their gradients, part by part. `dtype`: of the layer.
  static void Record(const std::vector<Part>& parts, DumpForTest& side, bool has_backward = true,
                     const std::string& dtype = "float32") {
    int k = 0;
    for (const Part& part : parts) {
      const std::string shape = fmt::format("[{}, 3]", part.samples);
      const std::string seen = Values(Times(part.data, part.scale), shape, dtype);
      side.Add(fmt::format("Torch.tanh.{}.forward", k), Values(part.data, shape, dtype), seen)
          .Add(fmt::format("Functional.loss.{}.forward", k), seen, Scalar(part.loss))
          .Add(fmt::format("Tensor.__mul__.{}.forward", k),
               Scalar(part.loss) + "," + ScalarJson("float", fmt::format("{}", part.weight)),
               Scalar(part.loss * part.weight));
      if (has_backward) RecordBackward(part, k, side);
      ++k;
    }
  }
  static void RecordBackward(const Part& part, int k, DumpForTest& side) {
    const std::string shape = fmt::format("[{}, 3]", part.samples);
    const std::string spread = Values(Times(part.data, 0.01 * part.weight), shape);
    side.Add(fmt::format("Tensor.__mul__.{}.backward", k), Scalar(1), Scalar(part.weight))
        .Add(fmt::format("Functional.loss.{}.backward", k), Scalar(part.weight), spread)
        .Add(fmt::format("Torch.tanh.{}.backward", k), spread,
             Values(Times(part.data, 0.02 * part.weight), shape));
  }
  // What an optimizer reads, which must be the sum of all parts.
  static void RecordStep(double size, DumpForTest& side) {
    side.Add("Tensor.mul.0.forward", Values({size, -size, size / 9, 2 * size}, "[3]"),
             Values({size / 10, -size / 10, size / 90, size / 5}, "[3]"));
  }
};

// Losses that are sums over samples.
const std::vector<Part> kInOne{{kWhole, 8, 20.3, 0.125}};
const std::vector<Part> kInTwo{{kFirst, 4, 12.2, 0.125}, {kSecond, 4, 8.1, 0.125}};

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

TEST_F(PartTotalsTest, APartOfAnotherWeightIsNamed) {
  Record({kInTwo[0], {kSecond, 4, 8.1, 0.1275}}, target_);
  Record(kInOne, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  const FirstWrongCall& answer = *comparison.first_wrong_call;
  EXPECT_EQ(answer.name, "Tensor.__mul__.1.forward");
  EXPECT_EQ(answer.cause, "scale");
  EXPECT_EQ(answer.cause_text, "the loss of part 2 of 2 weighs 1.02 times as much as golden's");
  EXPECT_TRUE(FailsOn(comparison, {"broken"}).value());
}

TEST_F(PartTotalsTest, MeansThatAreNotDividedAreNamed) {
  Record({{kFirst, 4, 3.1, 1}, {kSecond, 4, 2.1, 1}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  RecordStep(2, target_);
  RecordStep(1, golden_);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Tensor.__mul__.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "scale");
  EXPECT_EQ(comparison.first_wrong_call->cause_text,
            "the losses of all parts together weigh 2 times as much as golden's");
}

// Gradients that are divided after they were added up.
TEST_F(PartTotalsTest, MeansThatAreDividedLaterAreRight) {
  Record({{kFirst, 4, 3.1, 1}, {kSecond, 4, 2.1, 1}}, target_);
  Record({{kWhole, 8, 2.6, 1}}, golden_);
  RecordStep(1, target_);
  RecordStep(1, golden_);
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
