// Rules that run in a training against the same rules on the files that it left.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/csv.h"
#include "watch/live/monitor.h"
#include "watch/live/step_files.h"
#include "watch/points/watch_run.h"

namespace plumbline::watch {
namespace {

constexpr const char* kRules = R"x(["tensor_overflow", "gradient_vanishing(abs_mean_lt=1e-3)",
    "tensor_all_zero", "tensor_too_large(max_gt=1, min_gt=0.01)", "mean > 0 and max < 0.5",
    "prev(max) > 0.5 and max < 0.5", "weight_change_too_large(abs_mean_update_ratio_gt=0.5)",
    "weight_initialization(max_gt=0.5)", "weight_not_changed", "nan_count >= 2",
    {"when": "l2norm > 1", "for": 2, "on": {"io": "both", "nodes": "fc[1-3]"}}])x";

// The columns that tell a hit from all others.
using Hit = std::vector<std::string>;
Hit HitOf(const std::vector<std::string>& cells) {
  return {cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7], cells[8]};
}

class LiveRules : public ::testing::Test {
 protected:
  // A training of random tensors of all sizes, some of zeros, some with NaN, some the same again.
  void Train(const std::string& members) {
    directory_ = JoinPath(root_.path(), "Dec03_21-34-40-rank2-3f9c1a2b");
    ASSERT_TRUE(MakeDirectories(directory_));
    const auto config = ParseMonitorConfig(
        fmt::format(
            R"({{{}, "param_distribution": true, "wg_distribution": true, "watch": {}}})", members,
            kRules),
        "c.json");
    ASSERT_TRUE(config) << config.error().message();
    rules_ = config->watch;
    Monitor monitor(*config, {}, NewCsvSink(directory_, {config->ops, config->digits, 4, false}),
                    "", 0);
    ASSERT_TRUE(WriteNames(JoinPath(directory_, kNamesFile), {}, config->digits));
    monitor.Watch(std::make_unique<RuleWatch>(*config, RuleWatchPlace{directory_, 2, false}));
    for (int64_t step = 3; step < 12; ++step) {
      for (const MonitorKind kind : {MonitorKind::kActivation, MonitorKind::kReducedGradient,
                                     MonitorKind::kParameter, MonitorKind::kOther}) {
        AddStep(monitor, kind);
      }
      monitor.Commit(step);
    }
    monitor.Close();
    EXPECT_FALSE(monitor.TakeProblem());
  }

  void AddStep(Monitor& monitor, MonitorKind kind) {
    for (uint32_t i = 0; i < 40; ++i) {
      const bool is_input = kind == MonitorKind::kActivation && i % 2 == 0;
      const std::string name = fmt::format("fc{}.{}", i % 5, is_input ? "input" : "w");
      std::vector<float>& data = data_[{kind, i}];
      if (data.empty() || random_() % 3 > 0) Fill(data);
      const Shape sizes = {static_cast<int64_t>(data.size())}, strides = {1};
      const auto bytes = std::as_bytes(std::span(data));
      const int32_t micro_step = kind == MonitorKind::kActivation ? static_cast<int32_t>(i / 5) : 0;
      monitor.Add(kind, monitor.Name(name, static_cast<int32_t>(i / 10), i), micro_step,
                  Measure({DType::kFloat32, bytes.data(), sizes, strides}, 1e-8, nullptr));
    }
  }

  void Fill(std::vector<float>& data) {
    const auto size = static_cast<float>(std::pow(10.0, -static_cast<double>(random_() % 9)));
    const bool is_zero = random_() % 8 == 0;
    data.resize(1 + random_() % 5);
    for (float& one : data) {
      one = is_zero ? 0 : size * (static_cast<float>(random_() % 2000) / 500.0F - 2);
      if (random_() % 60 == 0) one = random_() % 2 == 0 ? NAN : INFINITY;
    }
  }

  // Of the table that the training wrote.
  [[nodiscard]] std::set<Hit> LiveHits() const {
    std::set<Hit> hits;
    const auto rows = csv::Parse(*ReadFile(JoinPath(directory_, kHitsFile)));
    for (size_t i = 1; i < rows->size(); ++i) hits.insert(HitOf((*rows)[i]));
    EXPECT_EQ(hits.size() + 1, rows->size());
    return hits;
  }

  // Of `plumb watch`; `unjudged` has what it could not tell.
  [[nodiscard]] std::set<Hit> HitsOfFiles(std::set<Hit>* unjudged) const {
    WatchOptions options;
    options.path = root_.path();
    options.rules = rules_;
    const auto report = WatchRecording(options);
    EXPECT_TRUE(report);
    std::set<Hit> hits;
    for (const WatchRow& row : report->rows) {
      const auto cells = WatchCells(report->rules[row.rule], row);
      const Hit hit = HitOf({cells.begin(), cells.end()});
      (row.verdict == Truth::kTrue ? &hits : unjudged)->insert(hit);
    }
    return hits;
  }

  const testing::TestDirectory root_;
  std::string directory_;
  Rules rules_;
  std::mt19937 random_{7};
  std::map<std::pair<MonitorKind, uint32_t>, std::vector<float>> data_;
};

constexpr const char* kAllOps =
    R"("ops": ["norm", "min", "max", "mean", "nans", "zeros", "shape"])";

TEST_F(LiveRules, AreThoseOfTheFiles) {
  Train(std::string(kAllOps) + R"(, "ndigits": "auto")");
  std::set<Hit> unjudged;
  const std::set<Hit> live = LiveHits();
  EXPECT_EQ(live, HitsOfFiles(&unjudged));
  std::set<std::string> rules;
  for (const Hit& hit : live) rules.insert(hit[0]);
  EXPECT_EQ(rules.size(), rules_.list().size() - 2);  // but for what statistics do not tell
  EXPECT_GT(live.size(), 300U);
}

TEST_F(LiveRules, DecideWhatRoundedFilesLeaveOpenAndNothingElse) {
  Train(kAllOps);
  std::set<Hit> unjudged;
  const std::set<Hit> live = LiveHits(), hits = HitsOfFiles(&unjudged);
  EXPECT_GT(hits.size(), 100U);
  for (const Hit& hit : hits) {
    EXPECT_TRUE(live.contains(hit)) << fmt::to_string(fmt::join(hit, " "));
  }
  for (const Hit& hit : live) {
    EXPECT_TRUE(hits.contains(hit) || unjudged.contains(hit))
        << fmt::to_string(fmt::join(hit, " "));
  }
}

}  // namespace
}  // namespace plumbline::watch
