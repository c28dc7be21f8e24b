#include "watch/anomalies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using Lines = std::vector<std::string>;

// One record of a file; its message says what it is.
std::string Record(const std::string& name, const std::string& tag, const std::string& numbers) {
  return fmt::format(R"("{}": {{{}, "tag_name": "{}", "message": "{}", "group_mates": [0, 1]}})",
                     name, numbers, tag, name);
}

class AnomaliesTest : public ::testing::Test {
 protected:
  void Put(const std::string& rank, const Lines& records) {
    std::string text;
    for (const std::string& record : records) text += (text.empty() ? "" : ", ") + record;
    PutText(rank, "{" + text + "}");
  }
  void PutText(const std::string& rank, const std::string& text) {
    ASSERT_TRUE(MakeDirectories(root_.Path("in/" + rank)));
    ASSERT_TRUE(WriteFileAtomically(root_.Path("in/" + rank + "/anomaly.json"), text, false));
  }
  Result<AnomalyReport> Run() { return AnalyseAnomalies(root_.Path("in"), "", options_); }

  testing::TestDirectory root_;
  AnomalyOptions options_;
};

TEST_F(AnomaliesTest, TheOrderIsThatInWhichNumbersFlow) {
  Put("rank0", {Record("optimizer", "0:w/rank0/exp_avg", R"("step": 1, "call_id": 0)"),
                Record("backward", "0:w/rank0/post_grad", R"("step": 1, "call_id": 1)"),
                Record("parameter", "0:w", R"("step": 1, "call_id": 0, "vpp_stage": 1)"),
                Record("forward", "0:m.output:0/rank0/actv", R"("step": 1, "call_id": 9)")});
  Put("rank1",
      {Record("forward of the next stage", "0:n/rank1/actv", R"("step": 1, "pp_stage": 1)"),
       Record("backward of the next stage", "0:n/rank1/actv_grad", R"("step": 1, "pp_stage": 1)"),
       Record("virtual stage", "1:n/rank1/actv", R"("step": 1, "vpp_stage": 1)"),
       Record("second micro step", "0:n/rank1/actv", R"("step": 1, "micro_step": 1)"),
       Record("step before", "0:n/rank1/exp_avg_sq", R"("step": 0, "rank": 1)")});
  options_.top = 100;
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->messages, (Lines{"step before", "forward", "forward of the next stage",
                                     "virtual stage", "backward of the next stage", "backward",
                                     "parameter", "optimizer", "second micro step"}));
  EXPECT_EQ(report->anomalies, 9U);
  EXPECT_TRUE(report->warnings.empty());
}

constexpr const char* kFirstOfStepThree = R"({
 "0:w/rank0/actv_step_3_call_1": {
  "step": 3,
  "call_id": 1,
  "value": "nan",
  "tag_name": "0:w/rank0/actv",
  "message": "b",
  "group_mates": [
   0,
   1
  ]
 },
 "0:w_step_3_call_2": {
  "step": 3,
  "call_id": 2,
  "rank": 0,
  "tag_name": "0:w",
  "message": "a",
  "group_mates": [
   0,
   1
  ]
 },
 "0:w_step_3_call_2_rank_1": {
  "step": 3,
  "call_id": 2,
  "rank": 1,
  "tag_name": "0:w",
  "message": "d",
  "group_mates": [
   0,
   1
  ]
 }
})";

TEST_F(AnomaliesTest, TheFirstOnesOfTheStepsAreWrittenAsTheyWere) {
  Put("rank0", {Record("a", "0:w", R"("step": 3, "call_id": 2, "rank": 0)"),
                Record("b", "0:w/rank0/actv", R"("step": 3, "call_id": 1, "value": "nan")"),
                Record("c", "0:w/rank0/actv", R"("step": 2)")});
  Put("rank1", {Record("d", "0:w", R"("step": 3, "call_id": 2, "rank": 1)")});
  options_.steps = {3, 4};
  options_.top = 3;
  const auto report = Run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->messages, (Lines{"b", "a", "d"}));
  EXPECT_EQ(*ReadFile(root_.Path("in/anomaly_analyse.json")), kFirstOfStepThree);
  options_.top = 1;
  EXPECT_EQ(Run()->messages, Lines{"b"});
  EXPECT_NE(Run()->warnings[0].find("was replaced"), std::string::npos);
}

TEST_F(AnomaliesTest, DamagedRecordsAreLeftOutAndTold) {
  PutText("rank0", "{");
  PutText("rank1", "[]");
  Put("rank2", {R"("x": 3)", R"("y": {"step": "1", "tag_name": "t"})", R"("z": {"step": 1})",
                Record("good", "0:w", R"("step": 1)")});
  Put("rank3", {});
  const auto report = Run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->messages, Lines{"good"});
  EXPECT_EQ(report->warnings.size(), 5U);
  EXPECT_EQ(report->files, 4U);
  EXPECT_EQ(AnomalyAnswer(*report),
            "first of 1 anomaly in what could be read (3 of 4 files damaged): good");
}

TEST_F(AnomaliesTest, WhatCannotBeReadIsNoAbsenceOfAnomalies) {
  Put("rank0", {});
  EXPECT_EQ(AnomalyAnswer(*Run()), "no anomaly in 1 file");
  ASSERT_TRUE(MakeDirectories(root_.Path("in/rank1/anomaly.json")));
  std::filesystem::create_symlink("nowhere", root_.Path("in/rank2"));
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(AnomalyAnswer(*report),
            "not certain: no anomaly in what could be read (2 of 3 files damaged)");
}

TEST_F(AnomaliesTest, WrongRequestsAreOneLine) {
  EXPECT_EQ(Run().error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(MakeDirectories(root_.Path("in/rank0")));
  EXPECT_NE(Run().error().message().find("no directory in it has an anomaly.json"),
            std::string::npos);
  options_.top = 0;
  EXPECT_EQ(Run().error().message(), "The top k number must be greater than 0.");
}

}  // namespace
}  // namespace plumbline
