#include "watch/trend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using Lines = std::vector<std::string>;

class TrendTest : public ::testing::Test {
 protected:
  void Put(const std::string& file, const std::string& text) {
    const std::string path = root_.Path("in/" + file);
    ASSERT_TRUE(MakeDirectories(std::string(DirectoryOf(path))));
    ASSERT_TRUE(WriteFileAtomically(path, text, false));
  }
  Trend Read() {
    auto trend = ReadTrend(root_.Path("in"), {});
    EXPECT_TRUE(trend) << trend.error().message();
    return trend ? *std::move(trend) : Trend();
  }

  testing::TestDirectory root_;
};

constexpr const char* kRank0 = "Dec03_21-34-40-rank0-aaaaaaaa/";
constexpr const char* kRank1 = "Dec03_21-34-41-rank1-bbbbbbbb/";

// "{kind} {name}: low..high ..." of the first statistic.
Lines Curves(const Trend& trend) {
  Lines lines;
  for (const TrendSeries& series : trend.series) {
    std::string line = series.kind + " " + series.name + ":";
    for (size_t i = 0; i < series.curves[0].low.size(); ++i) {
      line += fmt::format(" {}..{}", series.curves[0].low[i], series.curves[0].high[i]);
    }
    lines.push_back(line);
  }
  return lines;
}

TEST_F(TrendTest, ACurveSpansTheRanks) {
  Put(std::string(kRank0) + "grad_reduced_0-1.csv",
      "vpp_stage,name,step,norm,nans\n0,w,0,1,0\n0,w,1,2,0\n");
  Put(std::string(kRank1) + "grad_reduced_0-1.csv",
      "vpp_stage,name,step,norm,nans\n0,w,0,3,0\n0,w,4,5,0\n");
  const Trend trend = Read();
  EXPECT_EQ(trend.point_steps, (std::vector<int64_t>{0, 1, 4}));
  EXPECT_EQ(Curves(trend), Lines{"grad_reduced w: 1..3 2..2 5..5"});
  EXPECT_EQ(TrendText(trend),
            "no NaN or infinity, no alert\n  1 tensor, 3 steps (0 to 4), 2 ranks\n");
}

TEST_F(TrendTest, TheFirstNaNIsNamed) {
  Put(std::string(kRank0) + "grad_reduced_0-9.csv",
      "vpp_stage,name,step,norm,nans\n0,w,3,nan,12\n0,v,2,1,0\n");
  Put(std::string(kRank0) + "actv_0-9.csv",
      "vpp_stage,name,step,micro_step,norm,nans\n0,fc.input,3,0,nan,nan\n0,fc.output,3,1,inf,0\n");
  Put(std::string(kRank1) + "actv_0-9.csv",
      "vpp_stage,name,step,micro_step,norm,nans\n0,fc.output,3,0,nan,1\n");
  const Trend trend = Read();
  ASSERT_TRUE(trend.first_nonfinite);
  EXPECT_TRUE(TrendText(trend).starts_with(
      "first NaN or infinity: step 3, rank 0, actv fc.output: norm inf\n"));
  Lines bad;
  for (const TrendSeries& series : trend.series) {
    bad.push_back(fmt::format("{}.{} {}", series.name, series.micro_step, series.has_nonfinite));
  }
  // A row of NaN alone is one without a tensor.
  EXPECT_EQ(bad, (Lines{"fc.output.1 [false, true]", "fc.output.0 [false, true]",
                        "w.0 [false, true]", "fc.input.0 [false, false]", "v.0 [false, false]"}));
}

TEST_F(TrendTest, TheLargestJumpStandsFirst) {
  std::string text = "vpp_stage,name,step,max\n";
  for (int step = 0; step < 10; ++step) {
    text += fmt::format("0,flat,{0},2\n0,jumps,{0},{1}\n0,falls,{0},{2}\n", step,
                        step == 7 ? 50 : 0.5, 10 - step);
  }
  Put(std::string(kRank0) + "param_0-9.csv", text);
  const Trend trend = Read();
  EXPECT_EQ(trend.series[0].name, "jumps");
  EXPECT_EQ(trend.series[0].jump, 100);
  EXPECT_EQ(trend.series[0].jump_step, 7);
  EXPECT_NE(TrendText(trend).find(
                "largest jump: param jumps at step 7, rank 0: 50 after 0.5 (100 times)"),
            std::string::npos);
}

TEST_F(TrendTest, AJumpIsOneOfARank) {
  std::string calm = "vpp_stage,name,step,max\n", jumps = calm;
  for (int step = 0; step < 1000; ++step) {
    calm += fmt::format("0,w,{},60\n", step);
    jumps += fmt::format("0,w,{},{}\n", step, step == 555 ? 50 : 1);
  }
  Put(std::string(kRank0) + "param_0-999.csv", calm);
  Put(std::string(kRank1) + "param_0-999.csv", jumps);
  EXPECT_NE(TrendText(Read()).find("param w at step 555, rank 1: 50 after 1 (50 times)"),
            std::string::npos);
}

TEST_F(TrendTest, NaNFromTheFirstRowOnIsNotCertainWithoutItsCount) {
  Put(std::string(kRank0) + "actv_grad_0-9.csv",
      "vpp_stage,name,step,micro_step,norm\n0,.input,0,0,nan\n0,fc.output,0,0,1\n"
      "0,.input,1,0,nan\n0,fc.output,1,0,2\n");
  EXPECT_TRUE(TrendText(Read()).starts_with("not certain: no NaN or infinity, but for"));
  Put(std::string(kRank0) + "actv_grad_0-9.csv",
      "vpp_stage,name,step,micro_step,norm\n0,.input,0,0,nan\n0,fc.output,0,0,1\n"
      "0,.input,1,0,nan\n0,fc.output,1,0,nan\n");
  EXPECT_TRUE(TrendText(Read()).starts_with(
      "first NaN or infinity: step 1, rank 0, actv_grad fc.output: norm NaN\n"));
  // Where the shape was recorded it says that there was no tensor.
  Put(std::string(kRank0) + "actv_grad_0-9.csv",
      "vpp_stage,name,step,micro_step,norm,shape\n0,.input,0,0,nan,nan\n"
      "0,fc.output,0,0,1,\"[2]\"\n");
  EXPECT_TRUE(TrendText(Read()).starts_with("no NaN or infinity, no alert\n"));
}

TEST_F(TrendTest, NaNThatIsNoValueOfTheTensorIsNoFinding) {
  // The value of a tensor with dimensions is NaN, as are the extremes of one without elements.
  Put(std::string(kRank0) + "param_0-9.csv",
      "vpp_stage,name,step,norm,min,id\n0,w,0,1,1,nan\n0,empty,0,0,nan,nan\n0,w,1,nan,nan,nan\n");
  EXPECT_TRUE(TrendText(Read()).starts_with(
      "first NaN or infinity: step 1, rank 0, param w: norm NaN\n"));
  Put(std::string(kRank0) + "param_0-9.csv",
      "vpp_stage,name,step,norm,min,id\n0,w,0,1,1,nan\n0,empty,0,0,nan,nan\n");
  EXPECT_TRUE(TrendText(Read()).starts_with("no NaN or infinity, no alert\n"));
}

TEST_F(TrendTest, NaNOfOneRankIsCertainWhereAnotherHadTheTensor) {
  Put(std::string(kRank0) + "param_0-9.csv",
      "vpp_stage,name,step,norm\n0,w,0,nan\n0,w,1,nan\n");
  Put(std::string(kRank1) + "param_0-9.csv", "vpp_stage,name,step,norm\n0,w,0,1\n0,w,1,1\n");
  EXPECT_TRUE(TrendText(Read()).starts_with(
      "first NaN or infinity: step 1, rank 0, param w: norm NaN\n"));
}

TEST_F(TrendTest, AlertsAreMarkedWhereTheyBelong) {
  Put(std::string(kRank0) + "actv_0-0.csv",
      "vpp_stage,name,step,micro_step,norm\n1,fc.output,0,2,1\n0,fc.output,0,2,1\n");
  Put(std::string(kRank0) + "grad_reduced_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n");
  Put("anomaly_detected/rank0/anomaly.json",
      R"({"a": {"tag_name": "1:fc.output:2/rank0/actv", "step": 5, "message": "too large"},
          "b": {"tag_name": "0:w/rank0/post_grad", "step": 7},
          "c": {"tag_name": "0:gone/rank0/post_grad", "step": 9}})");
  const Trend trend = Read();
  Lines alerts;
  for (const TrendSeries& series : trend.series) {
    alerts.push_back(fmt::format("{} {} {}", series.name, series.vpp_stage, series.alert_steps));
  }
  EXPECT_EQ(alerts, (Lines{"fc.output 1 [5]", "w 0 [7]", "fc.output 0 []"}));
  EXPECT_TRUE(TrendText(trend).starts_with("no NaN or infinity; first of 3 alerts: too large\n"));
}

TEST_F(TrendTest, OfAResumedTrainingTheLaterRowsCount) {
  Put(std::string(kRank0) + "param_0-9.csv",
      "vpp_stage,name,step,norm\n0,w,0,1\n0,w,1,100\n0,w,2,100\n");
  Put("Dec04_00-00-00-rank0-cccccccc/param_0-9.csv", "vpp_stage,name,step,norm\n0,w,1,2\n");
  const Trend trend = Read();
  EXPECT_EQ(Curves(trend), Lines{"param w: 1..1 2..2"});
  EXPECT_NE(TrendText(trend).find("2 rows left out: a later directory"), std::string::npos);
}

TEST_F(TrendTest, ManyStepsShareAPoint) {
  std::string text = "vpp_stage,name,step,norm\n";
  for (int step = 0; step < 1000; ++step) text += fmt::format("0,w,{},{}\n", step, step);
  Put(std::string(kRank0) + "param_0-999.csv", text);
  const Trend trend = Read();
  EXPECT_EQ(trend.point_steps.size(), kMostCurvePoints);
  EXPECT_EQ(trend.steps, 1000U);
  EXPECT_EQ(trend.series[0].curves[0].low[0], 0);
  EXPECT_EQ(trend.series[0].curves[0].high[0], 3);
  EXPECT_EQ(trend.series[0].curves[0].high.back(), 999);
}

TEST_F(TrendTest, WhatCannotBeReadIsOneLine) {
  EXPECT_EQ(ReadTrend(root_.Path("in"), {}).error().code(), ErrorCode::kNotFound);
  Put(std::string(kRank0) + "param_0-9.csv", "vpp_stage,name,step,norm\n");
  EXPECT_NE(ReadTrend(root_.Path("in"), {}).error().message().find("no row"), std::string::npos);
  Put(std::string(kRank0) + "param_0-9.csv", "vpp_stage,name,step,norm\n0,w,0,1\n0,w,1,0.1");
  EXPECT_EQ(Read().warnings.size(), 1U);
}

TEST_F(TrendTest, ABadEntryStopsNothingAndTheFirstLineSaysSo) {
  Put(std::string(kRank0) + "param_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,1\n");
  const auto starts = [&](const char* with) { return TrendText(Read()).starts_with(with); };
  EXPECT_TRUE(starts("no NaN or infinity, no alert\n"));
  ASSERT_TRUE(MakeDirectories(root_.Path("in/" + std::string(kRank0) + "actv_0-0.csv")));
  EXPECT_TRUE(starts("not certain: no NaN or infinity, no alert in what could be read "
                     "(1 file or directory damaged or missing)\n"));
  std::filesystem::create_symlink("nowhere", root_.Path("in/Dec03_21-34-41-rank1-bbbbbbbb"));
  EXPECT_TRUE(starts("not certain: no NaN or infinity, no alert in what could be read (2 files"));
  const std::string page = root_.Path("page.html");
  ASSERT_TRUE(WriteTrendPage(Read(), page));
  EXPECT_NE(ReadFile(page)->find("\"state\": \"unknown\""), std::string::npos);
  Put("anomaly_detected/rank0/anomaly.json", "{");
  EXPECT_TRUE(starts("not certain: no NaN or infinity, no alert in what could be read (3 files"));
  Put(std::string(kRank0) + "param_0-0.csv", "vpp_stage,name,step,norm\n0,w,0,inf\n");
  EXPECT_TRUE(starts("first NaN or infinity in what could be read (3 files"));
}

TEST_F(TrendTest, ThePageHoldsNoMarkupOfAFile) {
  Put(std::string(kRank0) + "param_0-0.csv", "vpp_stage,name,step,norm\n0,</script><b>,0,1\n");
  const std::string path = root_.Path("page.html");
  ASSERT_TRUE(WriteTrendPage(Read(), path));
  const std::string page = *ReadFile(path);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_NE(page.find("\"point_steps\": [0]"), std::string::npos);
}

}  // namespace
}  // namespace plumbline
