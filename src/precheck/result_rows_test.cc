#include "precheck/result_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/file/test_directory.h"

namespace plumbline::precheck::result_rows_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string Spelled(double value, bool is_double, int precision = 14, bool is_integer = false) {
  std::string out;
  AppendNumber(Number{value, is_double, is_integer}, precision, out);
  return out;
}

TEST(ResultRows, DoublesHaveAFixedCountOfDigits) {
  EXPECT_EQ(Spelled(0.99999999681191, true), "0.99999999681191");
  EXPECT_EQ(Spelled(7.09446633947e-08, true), "0.00000007094466");
  EXPECT_EQ(Spelled(0, true), "0.00000000000000");
  EXPECT_EQ(Spelled(-0.0, true), "-0.00000000000000");
  EXPECT_EQ(Spelled(2.5, true, 0), "2");  // ties to even, as Python rounds
  EXPECT_EQ(Spelled(0.1, true, 20), "0.10000000000000000555");
  EXPECT_EQ(Spelled(std::nan(""), true), "nan");
  EXPECT_EQ(Spelled(-std::nan(""), true), "nan");
  EXPECT_EQ(Spelled(-kInf, true), "-inf");
  EXPECT_EQ(Spelled(std::numeric_limits<double>::max(), true, 20).size(), 309U + 1 + 20);
  EXPECT_EQ(Spelled(3, true, 14, true), "3");
}

// The expected texts are those of str(numpy.float32(value)).
TEST(ResultRows, NarrowFloatsHaveTheirShortestDigitsAsNumPyPrintsThem) {
  EXPECT_EQ(Spelled(0.00048828125, false), "0.00048828125");
  EXPECT_EQ(Spelled(1e-7F, false), "1e-07");
  EXPECT_EQ(Spelled(0.0001F, false), "1e-04");  // just below
  EXPECT_EQ(Spelled(0.1F, false), "0.1");
  EXPECT_EQ(Spelled(-1.5F, false), "-1.5");
  EXPECT_EQ(Spelled(0, false), "0.0");
  EXPECT_EQ(Spelled(-0.0, false), "-0.0");
  EXPECT_EQ(Spelled(16777216, false), "16777216.0");
  EXPECT_EQ(Spelled(1234567936, false), "1234568000.0");
  EXPECT_EQ(Spelled(1e16F, false), "1e+16");
  EXPECT_EQ(Spelled(3.4028235e38F, false), "3.4028235e+38");
  EXPECT_EQ(Spelled(1e-45F, false), "1e-45");
  EXPECT_EQ(Spelled(std::nan(""), false), "nan");
  EXPECT_EQ(Spelled(kInf, false), "inf");
}

OutputRow ReluRow() {
  OutputRow row;
  row.name = "Functional.relu.0.forward.output.0";
  row.bench_dtype = "torch.float32";
  row.device_dtype = "torch.float16";
  row.shape = "(4,)";
  row.cosine = Number{1};
  row.max_abs_error = Number{.value = 0, .is_double = false};
  row.error_rate = Number{0};
  row.status = CheckStatus::kPass;
  row.message = "\nMax abs error below 0.001.";
  return row;
}

CallOutcome ReluOutcome() {
  CallOutcome outcome;
  outcome.name = "Functional.relu.0";
  outcome.forward = {CheckStatus::kPass, {ReluRow()}, {}};
  return outcome;
}

TEST(ResultRows, ARowOfTheDetailsHasUpstreamsBytes) {
  const CallRows rows = RowsOf(ReluOutcome(), ResultForm::kPyTorch, 14);
  EXPECT_EQ(rows.details,
            "Functional.relu.0.forward.output.0,torch.float32,torch.float16,\"(4,)\","
            "1.00000000000000,0.0, , , ,0.00000000000000, , , , , , , , , , , ,pass,\"\n"
            "Max abs error below 0.001.\"\r\n");
  EXPECT_EQ(rows.result, "Functional.relu.0,pass, \r\n");
}

TEST(ResultRows, HeadersStandOnceBehindTheMark) {
  const std::string details = HeaderText(DetailsHeader(ResultForm::kPyTorch));
  EXPECT_TRUE(
      details.starts_with("\xEF\xBB\xBF"
                          "API Name,Bench Dtype,DEVICE Dtype,Shape,"));
  EXPECT_TRUE(details.ends_with(",Status,Message\r\n"));
  EXPECT_EQ(std::count(details.begin(), details.end(), ','), 22);
  EXPECT_EQ(HeaderText(ResultHeader(ResultForm::kPyTorch)),
            "\xEF\xBB\xBF"
            "API name,Forward Test Success,Backward Test Success,Message\r\n");
}

TEST(ResultRows, ASkippedDirectionSaysWhy) {
  CallOutcome outcome = ReluOutcome();
  outcome.backward = {CheckStatus::kSkip, {}, Skip{SkipCause::kTimeout, "no answer within 600 s"}};
  CallRows rows = RowsOf(outcome, ResultForm::kPyTorch, 14);
  EXPECT_EQ(rows.result, "Functional.relu.0,pass,SKIP,timeout: no answer within 600 s\r\n");
  EXPECT_NE(rows.details.find("Functional.relu.0.backward.output.0, , , , , , "),
            std::string::npos);
  EXPECT_TRUE(rows.details.ends_with(",SKIP,timeout: no answer within 600 s\r\n"));
  // A call that was not run has one row, and its reason is the forward's.
  outcome.forward = {CheckStatus::kSkip, {}, Skip{SkipCause::kFiltered, "on the black list"}};
  rows = RowsOf(outcome, ResultForm::kPyTorch, 14);
  EXPECT_EQ(rows.result, "Functional.relu.0,SKIP,SKIP,filtered: on the black list\r\n");
  EXPECT_EQ(rows.details,
            "Functional.relu.0.forward.output.0, , , , , , , , , , , , , , , , , , , , ,SKIP,"
            "filtered: on the black list\r\n");
}

TEST(ResultRows, NothingToCompareIsNoPass) {
  CallOutcome outcome;
  outcome.name = "Torch.f.0";
  outcome.forward.status = CheckStatus::kPass;
  EXPECT_EQ(RowsOf(outcome, ResultForm::kPyTorch, 14).result,
            "Torch.f.0,SKIP, ,no-output: nothing to compare was returned\r\n");
  outcome.forward.status = CheckStatus::kNone;
  EXPECT_EQ(RowsOf(outcome, ResultForm::kPyTorch, 14).result,
            "Torch.f.0,SKIP, ,no-output: nothing to compare was returned\r\n");
}

TEST(ResultRows, MergedCallsAreCounted) {
  CallOutcome outcome = ReluOutcome();
  outcome.merged_calls = 2;
  EXPECT_EQ(RowsOf(outcome, ResultForm::kPyTorch, 14).result,
            "Functional.relu.0,pass, ,stands for 2 calls more like it\r\n");
}

TEST(ResultRows, FormulasAndLineBreaksAreHarmless) {
  CallOutcome outcome = ReluOutcome();
  outcome.forward.rows[0].message = "=cmd()\r\nnext\rlast";
  const CallRows rows = RowsOf(outcome, ResultForm::kPyTorch, 14);
  EXPECT_TRUE(rows.details.ends_with(",pass,\" =cmd()\nnext\nlast\"\r\n")) << rows.details;
  EXPECT_EQ(ReadName({" =cmd.f.0.forward.output.0"}), "=cmd.f.0.forward.output.0");
  EXPECT_EQ(ReadName({" Torch.f.0"}), " Torch.f.0");
}

TEST(ResultRows, MindSporesRowsAreItsOwn) {
  CallOutcome outcome;
  outcome.name = "Mint.where.0";
  OutputRow row;
  row.name = "Mint.where.0.forward.output.0";
  row.bench_dtype = row.device_dtype = "Int64";
  row.shape = "(1, 4096)";
  row.cosine = Number{1};
  row.max_abs_error = row.max_rel_error = Number{0};
  row.status = CheckStatus::kPass;
  outcome.forward = {CheckStatus::kPass, {row}, {}};
  const CallRows rows = RowsOf(outcome, ResultForm::kMindSpore, 14);
  EXPECT_EQ(rows.result, "Mint.where.0,pass,,\r\n");
  EXPECT_EQ(rows.details,
            "Mint.where.0.forward.output.0,Int64,Int64,\"(1, 4096)\",1.0,0.0,0.0,pass,\r\n");
}

TEST(ResultRows, PartsOfNames) {
  EXPECT_EQ(CallOfOutput("Functional.conv2d.0.forward.output.0"), "Functional.conv2d.0");
  EXPECT_EQ(CallOfOutput("Torch.lstm.0.backward.output.1_0"), "Torch.lstm.0");
  EXPECT_EQ(CallOfOutput("Torch.lstm.0"), "");
  // An argument that the call changed in place.
  EXPECT_EQ(CallOfOutput("Torch.add.0.forward.input.out"), "Torch.add.0");
  const auto changed = ParseOutputName("Functional.batch_norm.2.forward.input.1");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->api, "batch_norm");
  EXPECT_TRUE(changed->is_forward);
  const auto name = ParseOutputName("Torch.linalg.inv.3.backward.output.0");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->call, "Torch.linalg.inv.3");
  EXPECT_EQ(name->api, "linalg.inv");
  EXPECT_FALSE(name->is_forward);
  EXPECT_FALSE(ParseOutputName("Torch.a.b.c.3.forward.output.0"));
  EXPECT_FALSE(ParseOutputName("Torch.a.forward.output.0"));
  EXPECT_FALSE(ParseOutputName("Torch.a.0.forward.output.0.1"));
}

class DetailsFile : public ::testing::Test {
 protected:
  std::vector<DetailsRow> Read(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path_, text, /*durable=*/false));
    std::vector<DetailsRow> rows;
    status_ = VisitDetails(path_, needed_, [&](DetailsRow& row) -> plumbline::Status {
      rows.push_back(row);
      return {};
    });
    return rows;
  }

  testing::TestDirectory directory_;
  std::string path_ = directory_.Path("x.csv");
  std::vector<std::string_view> needed_ = {"API Name", "Status"};
  plumbline::Status status_;
};

TEST_F(DetailsFile, WhatIsWrittenIsRead) {
  const std::string text = HeaderText(DetailsHeader(ResultForm::kPyTorch)) +
                           RowsOf(ReluOutcome(), ResultForm::kPyTorch, 14).details;
  const std::vector<DetailsRow> rows = Read(text + "Functional.torn.0.forw");
  ASSERT_TRUE(status_) << status_.error().message();
  ASSERT_EQ(rows.size(), 1U);
  const OutputRow& row = rows[0].output;
  EXPECT_EQ(rows[0].problem, "");
  EXPECT_EQ(row.name, "Functional.relu.0.forward.output.0");
  EXPECT_EQ(row.device_dtype, "torch.float16");
  EXPECT_EQ(row.shape, "(4,)");
  EXPECT_EQ(row.cosine->value, 1);
  EXPECT_FALSE(row.hundredth);
  EXPECT_EQ(row.status, CheckStatus::kPass);
  EXPECT_EQ(row.message, ReluRow().message);
}

TEST_F(DetailsFile, BothReleasesSpellingsAreRead) {
  const auto rows = Read(
      "API Name,Status,\u5747\u65b9\u6839\u8bef\u5dee,ULP\u8bef\u5dee\u5e73\u5747\u503c,new\n"
      "a,warning,1e-07,nan,x\r\n"
      "b,skip, ,-inf,\r\n"
      "c,Warning,0,+0.5,\r\n");
  ASSERT_TRUE(status_) << status_.error().message();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].output.status, CheckStatus::kWarning);
  EXPECT_EQ(rows[0].output.rmse->value, 1e-07);
  EXPECT_TRUE(std::isnan(rows[0].output.mean_ulp->value));
  EXPECT_EQ(rows[1].output.status, CheckStatus::kSkip);
  EXPECT_FALSE(rows[1].output.rmse);
  EXPECT_EQ(rows[1].output.mean_ulp->value, -kInf);
  EXPECT_TRUE(rows[2].output.rmse->is_integer);
  EXPECT_EQ(rows[2].output.mean_ulp->value, 0.5);
}

TEST_F(DetailsFile, WhatCannotBeReadIsNamed) {
  const auto rows = Read("API Name,Status,Cosine\na,TRUE,1\nb,pass,x1\nc,pass\nd,pass,1,2\n");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].problem, "Status: \"TRUE\" is no status");
  EXPECT_EQ(rows[1].problem, "Cosine: \"x1\" is no number");
  EXPECT_EQ(rows[2].problem, "the row has 2 cells (expected 3)");
  EXPECT_EQ(rows[3].problem, "the row has 4 cells (expected 3)");
}

TEST_F(DetailsFile, MissingColumnsAreListed) {
  needed_ = {"API Name", "Status", "Message"};
  Read("API Name,Shape\n");
  EXPECT_EQ(status_.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status_.error().message().find("no column Status, Message"), std::string::npos)
      << status_.error().message();
  Read("");
  EXPECT_EQ(status_.error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline::precheck::result_rows_test
