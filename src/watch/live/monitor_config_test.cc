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
