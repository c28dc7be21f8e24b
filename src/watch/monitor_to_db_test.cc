#include "watch/monitor_to_db.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/sqlite/query_for_test.h"
#include "formats/table/monitor_trend.h"

namespace plumbline {
namespace {

using sqlite::Query;
using Lines = std::vector<std::string>;

constexpr const char* kTrend =
    "SELECT rank, step, target_name, micro_step, metric_name, t.* FROM trend_data AS t "
    "JOIN monitoring_targets USING (target_id) JOIN monitoring_metrics USING (metric_id) "
    "ORDER BY metric_id, rank, step, target_id";

class MonitorToDbTest : public ::testing::Test {
 protected:
  void Put(const std::string& directory, const std::string& file, const std::string& text) {
    ASSERT_TRUE(MakeDirectories(root_.Path("in/" + directory)));
    ASSERT_TRUE(WriteFileAtomically(root_.Path("in/" + directory + "/" + file), text, false));
  }
  Result<DataToDbReport> Run(std::optional<bool> micro_steps = std::nullopt) {
    DataToDbOptions options;
    options.micro_steps = micro_steps;
    options.mapping_path = mapping_;
    return MonitorToDb(root_.Path("in"), root_.Path("out"), options);
  }
  Lines Trend() {
    Lines rows;
    for (const std::string& row : Query(database(), kTrend)) rows.push_back(row);
    return rows;
  }
  std::string database() { return root_.Path("out/monitor_data.trend.db"); }

  testing::TestDirectory root_;
  std::string mapping_;
};

constexpr const char* kFirst = "Dec03_21-34-40-rank0-aaaaaaaa";
constexpr const char* kSecond = "Dec03_21-34-41-rank1-bbbbbbbb";

TEST_F(MonitorToDbTest, MicroStepsAreCountedOverTheSteps) {
  Put(kFirst, "actv_0-0.csv",
      "vpp_stage,name,step,micro_step,norm,max\n0,fc.input,0,0,1,2\n0,fc.input,0,1,3,4\n");
  Put(kFirst, "actv_5-5.csv", "vpp_stage,name,step,micro_step,norm,max\n0,fc.input,5,0,5,6\n");
  Put(kSecond, "param_5-5.csv", "vpp_stage,name,step,mean\n1,fc.weight,5,inf\n");
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->metrics, (Lines{"actv", "param_origin"}));
  EXPECT_EQ(report->rows, (std::vector<uint64_t>{3, 1}));
  EXPECT_EQ(Trend(), (Lines{"0|0|fc.input|0|actv|0|0|1|1|1.0|2.0|null",
                            "0|1|fc.input|0|actv|0|1|1|1|3.0|4.0|null",
                            "0|2|fc.input|0|actv|0|2|1|1|5.0|6.0|null",
                            "1|2|fc.weight|0|param_origin|1|2|2|2|null|null|1000000001.0"}));
  EXPECT_EQ(Query(database(), "SELECT * FROM global_stats"), Lines{"0|2|1|norm,max|mean"});
  EXPECT_EQ(Query(database(), "SELECT vpp_stage FROM monitoring_targets"), (Lines{"0", "1"}));
}

TEST_F(MonitorToDbTest, StepsAsTheyAreWithMicroStepsOfTargets) {
  Put(kFirst, "actv_4-4.csv",
      "vpp_stage,name,step,micro_step,norm\n0,fc.input,4,0,1\n0,fc.input,4,1,nan\n");
  const auto report = Run(false);
  ASSERT_TRUE(report);
  EXPECT_EQ(Trend(),
            (Lines{"0|4|fc.input|0|actv|0|4|1|1|1.0", "0|4|fc.input|1|actv|0|4|2|1|null"}));
  EXPECT_EQ(Query(database(), "SELECT * FROM global_stats"), Lines{"4|4|0|norm"});
}

TEST_F(MonitorToDbTest, OfAResumedTrainingTheLaterRowsCount) {
  Put(kFirst, "grad_reduced_0-9.csv", "vpp_stage,name,step,norm\n0,w,0,1\n0,w,1,2\n0,w,5,3\n");
  Put("Dec04_00-00-00-rank0-cccccccc", "grad_reduced_0-1.csv",
      "vpp_stage,name,step,norm\n0,w,1,7\n0,w,2,8\n");
  const auto report = Run(false);
  ASSERT_TRUE(report);
  EXPECT_EQ(Query(database(), "SELECT step, norm FROM trend_data"),
            (Lines{"0|1.0", "1|7.0", "2|8.0"}));
  EXPECT_EQ(report->of_earlier, 2U);
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_NE(report->notes[0].find("from its first step on Dec04_00-00-00-rank0-cccccccc counts"),
            std::string::npos);
}

TEST_F(MonitorToDbTest, DamageIsToldAndTheRestImported) {
  Put(kFirst, "other_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n0,w,x,1\n0,w,1,0.2");
  Put(kFirst, "linear_hook_0-0.csv", "vpp_stage,name,step,sr\n0,w,0,1\n");
  const auto report = Run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rows, std::vector<uint64_t>{1});
  ASSERT_EQ(report->warnings.size(), 2U);
  EXPECT_NE(report->warnings[0].find("ends within a row"), std::string::npos);
  EXPECT_NE(report->warnings[1].find("1 row left out: line 3"), std::string::npos);
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_NE(report->notes[0].find("1 files of linear_hook"), std::string::npos);
}

TEST_F(MonitorToDbTest, ABadEntryStopsNothingAndIsTold) {
  Put(kFirst, "other_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n");
  Put(kFirst, "actv_0-0.csv", "a,b\n");
  ASSERT_TRUE(MakeDirectories(root_.Path(std::string("in/") + kFirst + "/param_0-0.csv")));
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->rows, std::vector<uint64_t>{1});
  EXPECT_EQ(report->warnings.size(), 2U);
  EXPECT_EQ(report->damage, " in what could be read (2 files or directories damaged or missing)");
}

TEST_F(MonitorToDbTest, WithoutRowsThereIsNoDatabase) {
  EXPECT_EQ(Run().error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(MakeDirectories(root_.Path("in")));
  EXPECT_NE(Run().error().message().find("no directory of a monitor"), std::string::npos);
  ASSERT_TRUE(MakeDirectories(root_.Path(std::string("in/") + kFirst)));
  EXPECT_NE(Run().error().message().find("no csv file"), std::string::npos);
  Put(kFirst, "actv_0-0.csv", "vpp_stage,name,step,micro_step,norm\n");
  EXPECT_NE(Run().error().message().find("no row"), std::string::npos);
  Put(kFirst, "actv_1-1.csv", "a,b\n");
  EXPECT_EQ(Run().error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(KindOf(root_.Path("out")), PathKind::kMissing);
}

TEST_F(MonitorToDbTest, MappingChangesNames) {
  mapping_ = root_.Path("map.json");
  ASSERT_TRUE(WriteFileAtomically(mapping_, R"({"fc": "linear"})", false));
  Put(kFirst, "actv_0-0.csv", "vpp_stage,name,step,micro_step,norm\n0,fc.input,0,0,1\n");
  ASSERT_TRUE(Run());
  EXPECT_EQ(Query(database(), "SELECT target_name FROM monitoring_targets"), Lines{"linear.input"});
}

TEST(MonitorTags, PartsOfTheName) {
  trend_db::Row row;
  row.target = "layers.3.mlp.0.1.mlp.weight";
  std::string text;
  for (const trend_db::Tag& tag : monitor_trend::TagsOf(row)) {
    text += tag.name + " " + std::string(tag.category) + "; ";
  }
  EXPECT_EQ(text, "weight module; mlp module; mlp.0 layer; layers.3 layer; layers module; ");
}

}  // namespace
}  // namespace plumbline
