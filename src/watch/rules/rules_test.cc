#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "watch/rules/monitor_tensor.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto rule = Rules::ParseRule(text);
  return rule ? "" : rule.error().message();
}

Outcome Judge(std::string_view text, const RecordedStatistics& now,
              const RecordedStatistics* before = nullptr) {
  Rules rules;
  rules.Add(*Rules::ParseRule(text));
  const TensorFacts facts = FactsOf(now);
  TensorFacts earlier;
  ChangeFacts change;
  Watched watched;
  watched.now = &facts;
  if (before != nullptr) {
    earlier = FactsOf(*before);
    change = ChangeFromStatistics(facts, earlier, rules.wishes());
    watched.before = &earlier;
    watched.change = &change;
  }
  watched.kinds = kAnyTensor | kWeight | kGradient | kActivation;
  Outcome outcome;
  Evaluate(rules.list().front(), watched, outcome);
  return outcome;
}

RecordedStatistics Printed() {
  RecordedStatistics out;
  out.shape = Shape{4};
  out.max = 2;
  out.min = -3;
  out.mean = -.5;
  out.norm = 3.74166;
  return out;
}

TEST(RuleParser, NamesWhatIsNear) {
  EXPECT_NE(ErrorOf("gradient_vanish").find("did you mean gradient_vanishing?"),
            std::string::npos);
  EXPECT_NE(ErrorOf("tensor_range(max_min_l=1)").find("max_min_lt"), std::string::npos);
  EXPECT_NE(ErrorOf("max > ").find("column 6"), std::string::npos);
  EXPECT_NE(ErrorOf("tensor_too_large").find("needs one of"), std::string::npos);
  EXPECT_NE(ErrorOf("tensor_all_zero(zero_percentage_ge=150)").find("0 to 100"),
            std::string::npos);
  EXPECT_EQ(ErrorOf("not (max > 1 or TO) and range_percentage[-1, 2] <= 5"), "");
}

TEST(RuleEvaluator, DecidesFromStatisticsOrSaysThatItCannot) {
  EXPECT_EQ(Judge("abs_mean > 1.1", Printed()).verdict, Truth::kTrue);
  EXPECT_EQ(Judge("abs_mean > 1.9", Printed()).verdict, Truth::kFalse);
  const Outcome open = Judge("abs_mean > 1.5", Printed());
  EXPECT_EQ(open.verdict, Truth::kUnknown);
  EXPECT_EQ(open.reasons, kStatisticsOnly);
  EXPECT_NEAR(static_cast<double>(open.checks[0].actual.low), 1.16667, 1e-5);
  EXPECT_NEAR(static_cast<double>(open.checks[0].actual.high), 1.87083, 1e-5);
  // An alternative that hits is enough, an unknown one is not.
  EXPECT_EQ(Judge("abs_mean > 1.5 or max > 1", Printed()).verdict, Truth::kTrue);
  EXPECT_EQ(Judge("abs_mean > 1.5 and max > 2", Printed()).verdict, Truth::kFalse);
  EXPECT_EQ(Judge("not abs_mean > 1.5", Printed()).verdict, Truth::kUnknown);
}

TEST(RuleEvaluator, TakesPrintedNumbersAsIntervals) {
  RecordedStatistics printed = Printed();
  printed.max = 1.23457e6;
  printed.relative_slack = PrintedSlack(*printed.max, 6);
  EXPECT_EQ(Judge("max > 1234567", printed).verdict, Truth::kUnknown);
  EXPECT_EQ(Judge("max > 1234564", printed).verdict, Truth::kTrue);
  EXPECT_EQ(Judge("max > 1234576", printed).verdict, Truth::kFalse);
}

TEST(RuleEvaluator, NeverTakesNanForNoHit) {
  RecordedStatistics bad = Printed();
  bad.max = bad.min = bad.mean = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Judge("tensor_overflow", bad).verdict, Truth::kTrue);
  EXPECT_EQ(Judge("tensor_too_large(max_gt=2)", bad).reasons, kNan);
  EXPECT_EQ(UpstreamCode(Judge("weight_change_too_small", bad).reasons), 5);
  // Sums of finite numbers are finite, or overflow; they are never NaN.
  for (std::optional<double> RecordedStatistics::* one :
       {&RecordedStatistics::norm, &RecordedStatistics::mean}) {
    RecordedStatistics alone;
    alone.*one = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(Judge("tensor_overflow", alone).verdict, Truth::kTrue);
  }
  // A norm that overflowed proves nothing.
  RecordedStatistics norm = Printed();
  norm.norm = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Judge("tensor_overflow", norm).verdict, Truth::kFalse);
}

TEST(RuleEvaluator, ComparesWithTheEarlierValue) {
  RecordedStatistics before = Printed(), now = Printed();
  before.digest = now.digest = "0123abcd";
  EXPECT_EQ(Judge("weight_not_changed", now, &before).verdict, Truth::kTrue);
  now.digest = "4567abcd";
  EXPECT_EQ(Judge("weight_not_changed", now, &before).verdict, Truth::kUnknown);
  now.max = 2.1;
  EXPECT_EQ(Judge("weight_not_changed", now, &before).verdict, Truth::kFalse);
  EXPECT_EQ(Judge("prev(max) == 2 and max > 2", now, &before).verdict, Truth::kTrue);
  before.shape = Shape{3};
  EXPECT_EQ(Judge("weight_not_changed", now, &before).reasons, kPrevShape);
}

TEST(RulesFile, SaysWhereItIsWrong) {
  const auto error = [](const std::string& text) {
    const auto rules = Rules::ParseFile(text, "w.yaml");
    return rules ? "" : rules.error().message();
  };
  EXPECT_EQ(error("version: 1\nrules:\n  - when: TO\n    on: {ops: [ReLU], slots: [0]}\n"), "");
  EXPECT_NE(error("version: 1\nrules:\n  - wen: TO\n").find("when"), std::string::npos);
  EXPECT_NE(error("version: 1\nrules:\n  - {name: a, when: TO, for: 0}\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(error("version: 2\nrules: []\n").find("version is 2"), std::string::npos);
}

TEST(RulesFile, TellsAllFaultsAtOnce) {
  const auto rules = Rules::ParseFile(
      "version: 1\nrules:\n  - {name: a, when: TO}\n  - name: a\n    whn: TO\n"
      "    on: {steps: 9-2, slots: [x]}\n    severity: fatal\n    for: -1\n  - when: nosuch\n",
      "w.yaml");
  ASSERT_FALSE(rules);
  const std::string& text = rules.error().message();
  EXPECT_TRUE(text.starts_with("w.yaml: 8 faults\n  line 5: unknown key \"whn\"")) << text;
  for (const char* part : {"has no \"when\"", "another rule is called \"a\"", "steps is \"9-2\"",
                           "slots: expected", "severity is \"fatal\"", "for: expected",
                           "no condition or statistic \"nosuch\""}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

// "there norm": whether there is a tensor, and which statistic says that it holds NaN.
std::string Reading(const std::vector<std::string>& statistics,
                    const std::vector<std::optional<double>>& values) {
  constexpr std::array<const char*, 3> kWords = {"there", "none", "unclear"};
  const auto nan = TellingNaN(statistics, values);
  return fmt::format("{} {}", kWords.at(static_cast<size_t>(TensorOf(statistics, values))),
                     nan ? statistics[*nan] : "-");
}

TEST(MonitorTensor, NaNIsOfTheTensorOrOfItsAbsence) {
  const double nan = std::nan("");
  const std::vector<std::string> all = {"norm", "min", "max", "mean", "zeros"};
  EXPECT_EQ(Reading({"norm"}, {nan}), "unclear norm");
  EXPECT_EQ(Reading({"norm", "nans"}, {nan, nan}), "none norm");
  EXPECT_EQ(Reading({"norm", "nans"}, {nan, 0}), "there -");
  EXPECT_EQ(Reading({"norm", "shape"}, {nan, std::nullopt}), "there norm");
  EXPECT_EQ(Reading({"norm", "id"}, {1, nan}), "there -");
  EXPECT_EQ(Reading(all, {nan, nan, nan, nan, 0}), "there norm");
  EXPECT_EQ(Reading(all, {1.5, 1, 2, nan, 0}), "there mean");
  EXPECT_EQ(Reading(all, {0, nan, nan, nan, nan}), "there -");  // without elements
  EXPECT_EQ(Reading(all, {1, nan, nan, 1, 0}), "there -");      // complex
  EXPECT_EQ(Reading(all, {1, 0, 1, 0.5, nan}), "there -");      // truth values
}

TEST(Pattern, LooksForAPart) {
  EXPECT_TRUE(MatchesPattern("layers.*", "Module.layers.0.ReLU"));
  EXPECT_TRUE(MatchesPattern("fc[12].weight$", "net.fc2.weight"));
  EXPECT_FALSE(MatchesPattern("^layers.*", "Module.layers.0"));
  EXPECT_FALSE(MatchesPattern("^a?c$", "abdc"));
}

}  // namespace
}  // namespace plumbline::watch
