#include "watch/live/alerts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text/json.h"

namespace plumbline::watch {
namespace {

// How many alerts a series of values of one parameter's gradient gives at each step.
std::vector<size_t> AlertsOf(const std::vector<double>& series, const std::string& rules,
                             std::string* document = nullptr,
                             const std::string& members = R"("ops": ["norm", "mean"])") {
  const auto config =
      ParseMonitorConfig("{" + members + R"(, "alert": {"rules": [)" + rules + "]}}", "c.json");
  Alerts alerts(*config, {});
  const WatchedName name{"fc.weight", 0, 0};
  std::vector<size_t> found;
  for (size_t i = 0; i < series.size(); ++i) {
    StepRows rows;
    rows.step = static_cast<int64_t>(i);
    TensorValues values = ValuesOfNumber(series[i]);
    values.of(Op::kNorm) = 1;  // alone the mean moves
    rows.of(MonitorKind::kReducedGradient).push_back({&name, 0, 0, values});
    found.push_back(alerts.Check(rows).size());
  }
  if (document != nullptr) *document = alerts.Document().Text(1);
  return found;
}

const char* const kHalf = R"({"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}})";
const char* const kNanRule = R"({"rule_name": "AnomalyNan"})";
using Counts = std::vector<size_t>;

TEST(Alerts, FireAboveTheHistoryByMoreThanTheThreshold) {
  EXPECT_EQ(AlertsOf({1, 1, 1.51}, kHalf), (Counts{0, 0, 1}));
  EXPECT_EQ(AlertsOf({1, 1, 1.49}, kHalf), (Counts{0, 0, 0}));
  EXPECT_EQ(AlertsOf({-1, -1.6}, kHalf), (Counts{0, 1}));
  EXPECT_EQ(AlertsOf({0, -1e-9}, kHalf), (Counts{0, 1}));
}

TEST(Alerts, NaNFiresOnceAndDisablesNothing) {
  EXPECT_EQ(AlertsOf({1, NAN, NAN, 1, 2}, kHalf), (Counts{0, 1, 0, 0, 1}));
  EXPECT_EQ(AlertsOf({1, NAN, 1, NAN}, kNanRule), (Counts{0, 1, 0, 1}));
  EXPECT_EQ(AlertsOf({1, 9}, R"({"rule_name": "AnomalyNan", "args": {"threshold": 8}})"),
            (Counts{0, 1}));
  EXPECT_EQ(AlertsOf({1, 9}, ""), (Counts{0, 0}));
}

TEST(Alerts, OfLaterReleasesCompareMagnitudesOfNormAndMeanWithAFadingHistory) {
  const auto of = [](const std::vector<double>& series, const std::string& ops) {
    return AlertsOf(series, kHalf, nullptr, R"("profile": "latest", "ops": [)" + ops + "]");
  };
  EXPECT_EQ(of({1, -1.4, -1.6}, R"("mean")"), (Counts{0, 0, 1}));
  EXPECT_EQ(of({1, 9, 9}, R"("max")"), (Counts{0, 0, 0}));
  // Behind 9 the history is 0.99 + 0.09 = 1.08: 1.63 is more than 1.62, and 1.61 is not.
  EXPECT_EQ(of({1, 9, 1.63}, R"("mean")"), (Counts{0, 1, 1}));
  EXPECT_EQ(of({1, 9, 1.61}, R"("mean")"), (Counts{0, 1, 0}));
}

TEST(Alerts, DocumentHoldsEveryOpOfARow) {
  std::string document;
  AlertsOf({1, 2}, kHalf, &document);
  const auto parsed = json::Value::Parse(document);
  ASSERT_TRUE(parsed);
  const json::Value* record = parsed->Find("0:fc.weight/rank0/post_grad_step_1_call_0");
  ASSERT_NE(record, nullptr) << document;
  EXPECT_EQ(record->Find("ops")->Text(), R"(["mean"])");
  EXPECT_EQ(record->Find("values")->Text(), R"(["2.0"])");
  EXPECT_EQ(*record->Find("step")->AsInteger(), 1);
}

}  // namespace
}  // namespace plumbline::watch
