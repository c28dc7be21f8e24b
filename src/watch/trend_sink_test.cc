#include "watch/trend_sink.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/sqlite/query_for_test.h"

namespace plumbline::watch {
namespace {

using sqlite::Query;
using Lines = std::vector<std::string>;

constexpr const char* kAll =
    "SELECT step, metric_name, vpp_stage, target_name, micro_step, norm, max FROM trend_data JOIN "
    "monitoring_targets USING (target_id) JOIN monitoring_metrics USING (metric_id) ORDER BY step, "
    "metric_id, target_id";

class TrendSinkTest : public ::testing::Test {
 protected:
  static MonitorConfig ConfigOf(const std::string& text) {
    return *ParseMonitorConfig(text, "c.json");
  }
  static constexpr const char* kConfig =
      R"({"ops": ["max", "norm"], "format": "sqlite", "param_distribution": true})";

  // Values 1, 2, ... of the kind at the step, under the name.
  Status Write(StepSink& sink, int64_t step, MonitorKind kind, const std::vector<double>& values) {
    StepRows rows;
    rows.step = step;
    for (size_t i = 0; i < values.size(); ++i) {
      rows.of(kind).push_back({&name_, static_cast<int32_t>(i), 0, ValuesOfNumber(values[i])});
    }
    return sink.Write(rows);
  }
  std::string database() { return root_.Path("monitor_data.trend.db"); }
  Result<std::unique_ptr<StepSink>> Open(const std::string& config = kConfig) {
    return NewTrendSink(root_.path(), ConfigOf(config), 3);
  }

  testing::TestDirectory root_;
  WatchedName name_{"layers.3.w", 1, 0};
};

TEST_F(TrendSinkTest, AStepIsThereWhenItIsWritten) {
  const auto sink = Open();
  ASSERT_TRUE(sink) << sink.error().message();
  ASSERT_TRUE(Write(**sink, 5, MonitorKind::kParameter, {1.5, NAN}));
  ASSERT_TRUE(Write(**sink, 7, MonitorKind::kOther, {-INFINITY}));
  EXPECT_EQ(Query(database(), kAll), (Lines{"5|param_origin|1|layers.3.w|0|1.5|1.5",
                                            "5|param_origin|1|layers.3.w|1|null|null",
                                            "7|other|1|layers.3.w|0|1000000001.0|-1000000001.0"}));
  EXPECT_EQ(Query(database(), "SELECT * FROM global_stats"), Lines{"5|7|3|norm,max|norm,max"});
  EXPECT_EQ(Query(database(), "SELECT DISTINCT tag_name, category FROM monitoring_tags ORDER BY 1"),
            (Lines{"layers|module", "layers.3|layer", "w|module"}));
  ASSERT_TRUE((*sink)->Close());
  EXPECT_EQ(*ListDirectory(root_.path()), Lines{"monitor_data.trend.db"});
}

TEST_F(TrendSinkTest, TwoOptimizersWriteIntoOneDatabase) {
  const auto one = Open(), other = Open();
  ASSERT_TRUE(one && other);
  for (int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(Write(**one, step, MonitorKind::kParameter, {1}));
    ASSERT_TRUE(Write(**other, step, MonitorKind::kOther, {2}));
  }
  ASSERT_TRUE((*one)->Close() && (*other)->Close());
  EXPECT_EQ(Query(database(), "SELECT COUNT(*) FROM trend_data"), Lines{"6"});
  EXPECT_EQ(Query(database(), "SELECT COUNT(*) FROM monitoring_targets"), Lines{"1"});
}

TEST_F(TrendSinkTest, AResumedTrainingGoesOnWithWhatItsConfigurationAsksFor) {
  {
    const auto sink = Open();
    ASSERT_TRUE(sink && Write(**sink, 0, MonitorKind::kParameter, {1}));
    ASSERT_TRUE(Write(**sink, 1, MonitorKind::kParameter, {2}));
  }  // as if killed: not closed
  ASSERT_TRUE(TrimTrend(root_.path(), 3, 1));
  EXPECT_EQ(Query(database(), "SELECT max_step FROM global_stats"), Lines{"0"});
  const auto sink = Open(R"({"ops": ["norm", "nans"], "format": "sqlite", "mv_distribution": true,
                             "param_distribution": true})");
  ASSERT_TRUE(sink) << sink.error().message();
  ASSERT_TRUE(Write(**sink, 1, MonitorKind::kMomentum, {3}));
  EXPECT_EQ(Query(database(),
                  "SELECT step, metric_name, norm, max, nans FROM trend_data JOIN "
                  "monitoring_metrics USING (metric_id) ORDER BY step"),
            (Lines{"0|param_origin|1.0|1.0|null", "1|exp_avg|3.0|null|0.0"}));
  EXPECT_EQ(Query(database(), "SELECT max_step, param_origin, exp_avg FROM global_stats"),
            Lines{"1|norm,max,nans|norm,nans"});
}

TEST_F(TrendSinkTest, NoDirectoryIsAnError) {
  const auto sink = NewTrendSink(root_.Path("none"), ConfigOf(kConfig), 0);
  ASSERT_FALSE(sink);
  EXPECT_NE(sink.error().message().find("none/monitor_data.trend.db"), std::string::npos);
}

TEST(TrendSink, StatisticsWithoutColumnAreTold) {
  const auto none = ParseMonitorConfig(R"({"ops": ["id"], "format": "sqlite"})", "c.json");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("ops: none of them"), std::string::npos);
  const auto some = ParseMonitorConfig(R"({"ops": ["infs", "max"], "format": "sqlite"})", "c.json");
  ASSERT_TRUE(some);
  ASSERT_EQ(some->warnings.size(), 1U);
  EXPECT_NE(some->warnings[0].find("ops: infs has no column"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::watch
