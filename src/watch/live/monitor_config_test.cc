#include "watch/live/monitor_config.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plumbline::watch {
namespace {

TEST(MonitorConfig, DefaultsWatchTheNormOfNothing) {
  const auto config = ParseMonitorConfig("{}", "c.json");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->ops, std::vector<Op>{Op::kNorm});
  EXPECT_EQ(config->digits, 6);
  EXPECT_EQ(config->steps_per_file, 1);
  EXPECT_FALSE(config->activations || config->gradients);
}

TEST(MonitorConfig, EveryFaultIsToldAtOnce) {
  const auto config = ParseMonitorConfig(
      R"({"eps": 1, "ops": "norm", "module_ranks": "0", "targets": [],
          "alert": {"rules": [{"rule_name": "AnomalyTurbulense", "args": {"threshold": 0.5}}]},
          "step_interval": 0, "cc_distribution": {"foo": 1}})",
      "c.json");
  ASSERT_FALSE(config);
  const std::string& message = config.error().message();
  EXPECT_EQ(std::ranges::count(message, '\n'), 7) << message;
  for (const char* part : {"7 faults", "eps: is 1", "ops: is \"norm\"", "module_ranks: is \"0\"",
                           "such as [0]", "targets: is []", "alert.rules[0].rule_name",
                           "step_interval: is 0", "cc_distribution.foo"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
}

TEST(MonitorConfig, WarningsStandBehindTheFaults) {
  const auto config =
      ParseMonitorConfig(R"({"eps": 1, "wg_distributon": true, "ops": []})", "c.json");
  ASSERT_FALSE(config);
  const std::string& message = config.error().message();
  EXPECT_EQ(message.find("c.json: 1 fault\n  eps: is 1"), 0U) << message;
  EXPECT_NE(message.find("warning: wg_distributon: unknown key"), std::string::npos) << message;
  EXPECT_NE(message.find("warning: ops: names no statistic"), std::string::npos) << message;
}

TEST(MonitorConfig, ReadsWhatIsGiven) {
  const auto config = ParseMonitorConfig(
      R"({"targets": {"fc": {"input": "tuple[2]:1", "output": "tensor"}}, "xy_distribution": true,
          "ops": ["max", "infs", "max", "foo"], "ndigits": "auto", "module_ranks": ["1", 2],
          "alert": {"rules": [{"rule_name": "AnomalyNan"}], "dump": true},
          "squash_name": "latest", "step_intervall": 3})",
      "c.json");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->targets.at(0).input.index, 1);
  EXPECT_EQ(config->ops, (std::vector<Op>{Op::kMax, Op::kInfs}));
  EXPECT_FALSE(config->digits);
  EXPECT_EQ(config->ranks, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(config->dumps_alerts);
  ASSERT_EQ(config->warnings.size(), 3U);
  EXPECT_EQ(config->warnings[0],
            "step_intervall: unknown key, ignored. Did you mean \"step_interval\"?");
}

TEST(MonitorConfig, AProfileSetsDefaultsAlone) {
  using enum MonitorConfig::Squash;
  const auto of = [](const char* members) {
    const auto config = ParseMonitorConfig(members, "c.json");
    EXPECT_TRUE(config) << config.error().message();
    return *config;
  };
  const MonitorConfig first = of(R"({"profile": "1.2.2", "ops": ["max"]})");
  EXPECT_EQ(first.ops, std::vector<Op>{Op::kMax});
  EXPECT_TRUE(!first.updated_parameters && !first.all_elements && first.squash == k122);
  const MonitorConfig latest = of(R"({"ops": ["dtype", "max"], "profile": "latest"})");
  EXPECT_EQ(latest.ops, (std::vector<Op>{Op::kDType, Op::kMax, Op::kShape}));
  EXPECT_TRUE(latest.updated_parameters && latest.all_elements && latest.squash == kNone);
  const MonitorConfig mixed = of(
      R"({"profile": "latest", "param_updated": false, "all_elements": false,
          "squash_name": "1.2"})");
  EXPECT_TRUE(!mixed.updated_parameters && !mixed.all_elements && mixed.squash == k122);
  EXPECT_EQ(of(R"({"profile": "latest", "squash_name": true})").squash, kLatest);
  const auto wrong = ParseMonitorConfig(R"({"profile": "newest"})", "c.json");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message().find("profile: is \"newest\" (expected \"1.2.2\" or"),
            std::string::npos);
}

TEST(MonitorConfig, SquashedNamesAsUpstreamHasThem) {
  using enum MonitorConfig::Squash;
  EXPECT_EQ(SquashName("module.language_model.encoder.layers.0.mlp.w", k122), "0.mlp.w");
  EXPECT_EQ(SquashName("embedding.word_embeddings.weight", k122), "word_embeddings.weight");
  EXPECT_EQ(SquashName("output_layer.weight", k122), "weight");
  EXPECT_EQ(SquashName("a.norm.b", k122), "norm.b");
  EXPECT_EQ(SquashName("model.embed_tokens.weight", k122), "model.embed_tokens.weight");
  EXPECT_EQ(SquashName("model.layers.0.mlp.w", kLatest), "layers.0.mlp.w");
  EXPECT_EQ(SquashName("layers.0.mlp.w", kLatest), "layers.0.mlp.w");
  EXPECT_EQ(SquashName("model.layers.0", kNone), "model.layers.0");
}

}  // namespace
}  // namespace plumbline::watch
