#include "watch/live/rule_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::watch {
namespace {

MonitorConfig RulesConfig(const std::string& members, const std::string& directory = "") {
  const auto config = ParseMonitorConfig("{" + members + "}", JoinPath(directory, "c.json"));
  EXPECT_TRUE(config) << config.error().message();
  return config ? *config : MonitorConfig();
}

std::string FaultsOf(const std::string& watch, const std::string& directory = "") {
  const auto config =
      ParseMonitorConfig("{\"watch\": " + watch + "}", JoinPath(directory, "c.json"));
  return config ? "" : config.error().message();
}

void ExpectPart(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(RuleList, EveryFaultIsToldWithTheNearestName) {
  const std::string faults = FaultsOf(
      R"x(["gradient_vanish", {"when": "tensor_too_large(max_g=1)"}, {"when": "TO", "sevrity": 1},
          {"when": "TO", "on": {"slots": "x"}}, 7, {"for": 0, "severity": "bad"}])x");
  EXPECT_EQ(std::ranges::count(faults, '\n'), 8) << faults;
  ExpectPart(faults, "watch[0]: \"gradient_vanish\": column 1: no condition");
  ExpectPart(faults, "did you mean gradient_vanishing?");
  ExpectPart(faults, "watch[1].when: ");
  ExpectPart(faults, "did you mean max_gt?");
  ExpectPart(faults, "watch[2].sevrity: unknown key \"sevrity\"; did you mean severity?");
  ExpectPart(faults, "watch[3].on.slots: slots: expected numbers");
  ExpectPart(faults, "watch[4]: expected an expression or an object");
  ExpectPart(faults, "watch[5]: a rule has no \"when\"");
  ExpectPart(faults, "watch[5].severity: severity is \"bad\"");
  ExpectPart(faults, "watch[5].for: for: expected a number from 1 on");
}

TEST(RuleList, FilesAreThoseOfTheProgramInJson) {
  const testing::TestDirectory directory;
  const std::string path = JoinPath(directory.path(), "rules.json");
  const std::string rules =
      R"({"version": 1, "rules": [{"name": "dead", "when": "max == 0", "for": 2,
          "on": {"nodes": ["fc*", "out"], "ranks": "0-1"}, "severity": "warning"}]})";
  ASSERT_TRUE(WriteFileAtomically(path, rules, false));
  const MonitorConfig config = RulesConfig(R"("watch": "rules.json")", directory.path());
  const Rules own = *Rules::ReadFile(path);
  ASSERT_EQ(config.watch.list().size(), 1U);
  for (const Rules* one : {&config.watch, &own}) {
    const Rule& rule = one->list()[0];
    EXPECT_EQ(rule.name, "dead");
    EXPECT_EQ(rule.for_steps, 2);
    EXPECT_EQ(rule.severity, Severity::kWarning);
    EXPECT_EQ(rule.on.nodes, (std::vector<std::string>{"fc*", "out"}));
    EXPECT_TRUE(rule.on.ranks.Holds(1) && !rule.on.ranks.Holds(2));
  }
  ASSERT_TRUE(WriteFileAtomically(path, "version: 1", false));
  ExpectPart(FaultsOf("\"rules.json\"", directory.path()), "rules.json: is no JSON");
  ExpectPart(FaultsOf("\"none.json\"", directory.path()), "none.json");
}

TEST(RuleWatch, SaysWhatItCannotJudge) {
  const MonitorConfig config = RulesConfig(
      R"x("wg_distribution": true, "ops": ["max", "norm"], "watch": ["GV(abs_mean_lt=1e-9)", "max > 1",
         "weight_not_changed", "activation_range(max_min_gt=1)", "sd > 1"])x");
  const std::vector<std::string> limits = RuleWatch(config, {}).Limits();
  ASSERT_EQ(limits.size(), 4U);
  EXPECT_EQ(limits[0],
            "watch: gradient_vanishing: abs_mean is not known without min, mean in \"ops\"");
  ExpectPart(limits[1], "weight_not_changed: looks at weights: set param_distribution");
  ExpectPart(limits[2], "activation_range: looks at operators");
  ExpectPart(limits[3], "sd > 1: sd is not known from statistics");
}

class Training {
 public:
  // Steps of one gradient and one parameter whose only element is of this size.
  std::vector<std::string> Run(RuleWatch& watch, const std::vector<double>& sizes) {
    std::vector<std::string> lines;
    for (size_t i = 0; i < sizes.size(); ++i) {
      StepRows rows;
      rows.step = static_cast<int64_t>(i);
      rows.of(MonitorKind::kReducedGradient).push_back({&name_, 0, 0, ValuesOfNumber(sizes[i])});
      rows.of(MonitorKind::kParameter).push_back({&name_, 0, 1, ValuesOfNumber(sizes[i])});
      EXPECT_TRUE(watch.Look(rows, &lines));
    }
    return lines;
  }

 private:
  WatchedName name_{"fc.weight", 0, 0};
};

constexpr const char* kOps =
    R"("ops": ["norm", "min", "max", "mean", "nans"], "wg_distribution": true)";

TEST(RuleWatch, HitsAreLinesAndRows) {
  const testing::TestDirectory directory;
  const MonitorConfig config = RulesConfig(
      std::string(kOps) + R"x(, "watch": ["gradient_vanishing(abs_mean_lt=1e-9)",
          {"when": "weight_initialization(max_gt=0.5)", "severity": "note"},
          {"name": "twice", "when": "prev(max) > 0 and max == 0", "for": 2}])x");
  RuleWatch watch(config, {directory.path(), 3, false});
  const std::vector<std::string> lines = Training().Run(watch, {1, 1e-10, 0, 0});
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0],
            "watch: note: weight_initialization at step 0 rank 3 fc.weight param 0 (max 1 > 0.5)");
  EXPECT_EQ(lines[1],
            "watch: gradient_vanishing at step 1 rank 3 fc.weight grad_reduced 0 "
            "(abs_mean 1e-10 < 1e-09)");
  const std::string table = *ReadFile(JoinPath(directory.path(), kHitsFile));
  EXPECT_EQ(std::ranges::count(table, '\n'), 5) << table;
  ExpectPart(table, "rule,severity,step,prev_step,rank,");
  ExpectPart(table, "\ngradient_vanishing,error,2,,3,,fc.weight,grad_reduced,0,");
  EXPECT_EQ(watch.Summary()[0],
            "watch: gradient_vanishing: 4 steps, 3 hits, 1 no hit, 0 not evaluated");
  // A training that goes on has no first step.
  RuleWatch later(config, {"", 3, true});
  EXPECT_EQ(Training().Run(later, {1}).size(), 0U);
}

TEST(RuleWatch, KnowsNaNFromAbsenceWithoutTheOpNans) {
  const MonitorConfig config = RulesConfig(
      R"("ops": ["norm"], "wg_distribution": true, "watch": ["tensor_overflow"])");
  RuleWatch watch(config, {});
  const WatchedName name{"fc.weight", 0, 0};
  std::vector<std::string> lines;
  int64_t step = 0;
  for (const TensorValues& values :
       {NoValues(), ValuesOfNumber(std::nan("")), NoValues(), ValuesOfNumber(1)}) {
    StepRows rows;
    rows.step = step++;
    rows.of(MonitorKind::kReducedGradient).push_back({&name, 0, 0, values});
    EXPECT_TRUE(watch.Look(rows, &lines));
  }
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_EQ(watch.Summary()[0],
            "watch: tensor_overflow: 4 steps, 1 hit, 1 no hit, 2 not evaluated (missing 2)");
}

TEST(RuleWatch, TheLogIsNotFlooded) {
  const MonitorConfig config =
      RulesConfig(std::string(kOps) + R"(, "watch": ["max > 0", "min > 0", "mean > 0", "l2norm > 0",
                                      "max_min == 0"])");
  RuleWatch watch(config, {});
  const std::vector<std::string> one = Training().Run(watch, {1});
  ASSERT_EQ(one.size(), 9U);
  EXPECT_EQ(one.back(), "watch: step 0: and 2 more hits");
  const std::vector<std::string> all = Training().Run(watch, std::vector<double>(100, 1));
  EXPECT_EQ(all.size(), 24U * 9 + 1);
  EXPECT_EQ(all.back(), "watch: 200 hits are told; further ones are counted");
}

}  // namespace
}  // namespace plumbline::watch
