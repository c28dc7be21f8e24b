#include "precheck/precheck_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/table/xlsx.h"
#include "precheck/result_files.h"
#include "report/table.h"

namespace plumbline::precheck::precheck_files_test {
namespace {

constexpr std::string_view kEvil = "</script><b>&\"'\x01";

OutputRow Row(const std::string& name, CheckStatus status, double hundredth = 1) {
  OutputRow row;
  row.name = name;
  row.bench_dtype = row.device_dtype = "torch.float32";
  row.shape = "(2, 3)";
  row.status = status;
  row.hundredth = Number{hundredth};
  row.max_abs_error = Number{0.5};
  row.max_rel_error = Number{INFINITY};
  if (status != CheckStatus::kPass) row.message = "first line\nsecond line " + std::string(kEvil);
  if (status == CheckStatus::kError) {
    row.facts =
        FailureFacts{.worst_index = 7, .worst_bench = NAN, .worst_device = 2, .histogram = {}};
    row.facts->histogram = {3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1};
  }
  return row;
}

CallOutcome Outcome(const std::string& name, CheckStatus forward, CheckStatus backward,
                    double share = 1) {
  CallOutcome outcome;
  outcome.name = name;
  outcome.forward = {forward, {Row(name + ".forward.output.0", forward)}, {}};
  if (backward != CheckStatus::kNone) {
    outcome.backward = {backward, {Row(name + ".backward.output.0", backward, share)}, {}};
  }
  return outcome;
}

CallOutcome SkippedCall(const std::string& name) {
  CallOutcome outcome;
  outcome.name = name;
  outcome.forward.status = outcome.backward.status = CheckStatus::kSkip;
  outcome.forward.skip = outcome.backward.skip = Skip{SkipCause::kRandom, "draws numbers"};
  return outcome;
}

// A run of four calls with its files in a directory of its own.
class PrecheckFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto files = ResultFiles::Create(directory_.path(), "20250226101112", {});
    ASSERT_TRUE(files) << files.error().message();
    Add(*files, Outcome("Torch.add.0", CheckStatus::kPass, CheckStatus::kPass));
    Add(*files, Outcome("Functional.softmax.3", CheckStatus::kPass, CheckStatus::kError, 0.875));
    Add(*files, Outcome("Torch.mul.0", CheckStatus::kWarning, CheckStatus::kNone));
    Add(*files, SkippedCall("Torch.rand.0"));
    ASSERT_TRUE(files->Close());
    report_.framework = "pytorch";
    report_.framework_version = "2.13.0";
    report_.device = "npu";
    report_.dump_json = "runs/it's new/dump.json";
    report_.result_path = files->result_path();
    report_.details_path = files->details_path();
    report_.Finish();
  }

  void Add(ResultFiles& files, CallOutcome outcome) {
    ASSERT_TRUE(files.Append(outcome));
    report_.Add(place_++, std::move(outcome));
  }

  std::string Written(PrecheckFormat format) {
    const plumbline::Status written = WritePrecheckFiles({format}, report_);
    EXPECT_TRUE(written) << written.error().message();
    return ReadFile(report_.files.back()).value_or("");
  }

  const plumbline::testing::TestDirectory directory_;
  size_t place_ = 0;
  PrecheckReport report_;
};

TEST_F(PrecheckFiles, FormatsAreWords) {
  EXPECT_EQ(PrecheckFormatsOf({"junit", "csv", "xlsx", "xlsx"}).value(),
            (std::vector{PrecheckFormat::kXlsx, PrecheckFormat::kJunit}));
  const auto wrong = PrecheckFormatsOf({"pdf"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(wrong.error().message().find("pdf"), std::string::npos);
}

TEST_F(PrecheckFiles, WorkbookHasBothTables) {
  Written(PrecheckFormat::kXlsx);
  EXPECT_EQ(report_.files.back(), directory_.Path("accuracy_checking_tables_20250226101112.xlsx"));
  std::vector<std::vector<xlsx::Cell>> sheets[2];
  const auto read =
      xlsx::ReadRows(report_.files.back(), [&](size_t sheet, std::span<const xlsx::Cell> cells) {
        sheets[sheet].emplace_back(cells.begin(), cells.end());
        return true;
      });
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(sheets[0].size(), 5U);
  EXPECT_EQ(sheets[0][2][0].text, "Functional.softmax.3");
  EXPECT_EQ(sheets[0][2][2].text, "error");
  EXPECT_EQ(sheets[0][4][3].text, "random: draws numbers");
  ASSERT_EQ(sheets[1].size(), 7U);
  EXPECT_EQ(sheets[1][0].size(), 23U);
  const std::vector<xlsx::Cell>& wrong = sheets[1][4];
  EXPECT_EQ(wrong[0].text, "Functional.softmax.3.backward.output.0");
  EXPECT_TRUE(wrong[6].is_number);
  EXPECT_EQ(std::stod(wrong[6].text), 0.875);
  EXPECT_FALSE(wrong[13].is_number);  // infinity
  EXPECT_EQ(wrong[13].text, "inf");
}

TEST_F(PrecheckFiles, JunitHasACaseForEachDirection) {
  const std::string text = Written(PrecheckFormat::kJunit);
  EXPECT_NE(text.find("tests=\"7\" failures=\"1\" errors=\"0\" skipped=\"2\""), std::string::npos)
      << text;
  EXPECT_NE(text.find("name=\"Functional.softmax.3.backward\""), std::string::npos);
  EXPECT_NE(text.find("message=\"Functional.softmax.3 backward output.0: 12.5 % of elements"),
            std::string::npos);
  EXPECT_NE(text.find("second line &lt;/script&gt;&lt;b&gt;&amp;&quot;"), std::string::npos);
  EXPECT_NE(text.find("plumb extract 'runs/it'\\''s new/dump.json' Functional.softmax.3 "
                      "--device npu"),
            std::string::npos);
  EXPECT_NE(text.find("<system-out>Warning: Torch.mul.0 forward output.0"), std::string::npos);
  EXPECT_NE(text.find("<skipped message=\"random: draws numbers\"/>"), std::string::npos);
}

TEST_F(PrecheckFiles, JunitOfNothingJudgedIsNotGreen) {
  PrecheckReport nothing = report_;
  report_ = PrecheckReport();
  report_.framework = "pytorch";
  report_.result_path = nothing.result_path;
  report_.details_path = nothing.details_path;
  report_.was_interrupted = true;
  const std::string text = Written(PrecheckFormat::kJunit);
  EXPECT_NE(text.find("errors=\"2\""), std::string::npos) << text;
  EXPECT_NE(text.find("type=\"not-judged\""), std::string::npos);
  EXPECT_NE(text.find("type=\"interrupted\""), std::string::npos);
}

TEST_F(PrecheckFiles, PageHoldsWhatIsWrongAndNoMarkupOfIt) {
  const std::string text = Written(PrecheckFormat::kHtml);
  EXPECT_NE(text.find("\"answer\": \"wrong: Functional.softmax.3 backward output.0: 12.5 % of"),
            std::string::npos)
      << text.substr(text.find("id=\"data\""), 400);
  EXPECT_NE(text.find("\"histogram\": [3,0,0,0,0,0,0,0,0,0,0,0,0,2,0,1]"), std::string::npos);
  EXPECT_NE(text.find("\"bench\": \"nan\""), std::string::npos);
  EXPECT_NE(text.find("\\u003c/script>"), std::string::npos);
  EXPECT_EQ(text.find(kEvil.substr(0, 12)), std::string::npos);
  EXPECT_EQ(text.find("@DATA@"), std::string::npos);
}

TEST_F(PrecheckFiles, FindingsOfEarlierRunsComeFromTheFile) {
  PrecheckReport resumed;
  resumed.framework = "pytorch";
  resumed.result_path = report_.result_path;
  resumed.details_path = report_.details_path;
  resumed.AddEarlier({.name = "Functional.softmax.3",
                      .forward = CheckStatus::kPass,
                      .backward = CheckStatus::kError,
                      .skip = {}});
  const auto findings = FindingsOf(resumed);
  ASSERT_TRUE(findings) << findings.error().message();
  ASSERT_EQ(findings->size(), 3U);
  EXPECT_EQ((*findings)[0].name, "Functional.softmax.3.backward.output.0");
  EXPECT_EQ((*findings)[1].name, "Torch.mul.0.forward.output.0");
  EXPECT_EQ((*findings)[2].name, "Torch.rand.0.forward.output.0");
  EXPECT_FALSE((*findings)[0].facts);
  const auto of_run = FindingsOf(report_);
  ASSERT_EQ(of_run->size(), 3U);
  EXPECT_TRUE((*of_run)[0].facts);
  EXPECT_EQ((*of_run)[2].message, "random: draws numbers");
}

TEST_F(PrecheckFiles, ColumnsAreTyped) {
  const auto table = DetailsTable(report_);
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_EQ((*table)->row_count, 6U);
  ASSERT_EQ((*table)->columns.size(), 23U);
  const report::RowColumn& share = (*table)->columns[6];
  EXPECT_EQ(share.name, "hundredth");
  EXPECT_EQ(share.reals[3], 0.875);
  EXPECT_EQ(share.null_count, 1U);  // of the call that was skipped
  EXPECT_TRUE(share.IsNull(5));
  const std::string json = DetailsJson(report_).value_or("");
  EXPECT_NE(json.find("\"max_rel_error\": \"inf\""), std::string::npos) << json;
  EXPECT_NE(CallsJson(report_).value_or("").find("\"backward\": \"error\""), std::string::npos);
}

}  // namespace
}  // namespace plumbline::precheck::precheck_files_test
