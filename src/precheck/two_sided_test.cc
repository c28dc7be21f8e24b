#include "precheck/two_sided.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/csv.h"

namespace plumbline::precheck::two_sided_test {
namespace {

namespace fs = std::filesystem;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// A row of a float32 output with every number of the benchmark standard at `error`.
DetailsRow Row(const std::string& api, double error = 1e-5) {
  DetailsRow row;
  row.output.name = "Torch." + api + ".0.forward.output.0";
  row.output.bench_dtype = "torch.float64";
  row.output.device_dtype = "torch.float32";
  row.output.shape = "(2, 3)";
  row.output.status = CheckStatus::kPass;
  for (Cell* cell :
       {&row.output.small_value_error_ratio, &row.output.rmse, &row.output.max_rel_error,
        &row.output.mean_rel_error, &row.output.error_balance}) {
    *cell = Number{error};
  }
  return row;
}

TwoSidedRow JudgePair(const DetailsRow& target, const DetailsRow& golden) {
  const GoldenNumbers numbers(golden);
  return JudgeTwoSided(target, &numbers);
}

TEST(TwoSided, ErrorsAreDividedByThoseOfTheReference) {
  DetailsRow target = Row("sum");
  target.output.rmse = Number{3e-4};
  const TwoSidedRow row = JudgePair(target, Row("sum"));
  // The reference's 1e-5 counts as 2^-14.
  EXPECT_DOUBLE_EQ(row.rmse.value->value, 4.9152);
  EXPECT_EQ(row.rmse.status, CheckStatus::kError);
  EXPECT_EQ(row.mean_rel_error.status, CheckStatus::kPass);
  EXPECT_EQ(row.status, CheckStatus::kError);
  EXPECT_NE(row.message.find("root mean square error is 4.92 times"), std::string::npos);
  EXPECT_DOUBLE_EQ(row.excess, 4.9152 / 2);
}

// What is judged call by call has the rows of files that are compared.
TEST(TwoSided, RowsOfACallAreThoseOfTheFiles) {
  CallOutcome target, golden;
  target.name = golden.name = "Torch.sum.0";
  for (CallOutcome* side : {&target, &golden}) {
    side->forward.rows = {Row("sum", side == &target ? 1e-3 : 1e-5).output, Row("sum").output};
    side->forward.rows[1].name = "Torch.sum.0.forward.output.1";
    side->forward.status = CheckStatus::kPass;
    side->backward = DirectionOutcome::Skipped({SkipCause::kTimeout, "no answer"});
  }
  golden.forward.rows.pop_back();
  const testing::TestDirectory directory;
  TwoSidedOptions options;
  options.output_directory = directory.path();
  for (const auto& [side, path] : {std::pair(&target, &options.target_details),
                                   {&golden, &options.golden_details}}) {
    *path = directory.Path(side == &target ? "target.csv" : "golden.csv");
    ASSERT_TRUE(WriteFileAtomically(*path,
                                    HeaderText(DetailsHeader(ResultForm::kPyTorch)) +
                                        RowsOf(*side, ResultForm::kPyTorch, 14).details,
                                    false));
  }
  const auto compared = CompareTwoSided(options);
  ASSERT_TRUE(compared) << compared.error().message();
  EXPECT_EQ(compared->counts.outputs[static_cast<size_t>(CheckStatus::kError)], 1U);
  const CallRows rows = TwoSidedRowsOf(target, golden, 14);
  EXPECT_EQ(TwoSidedDetailsHeader() + rows.details, *ReadFile(compared->details_path));
  EXPECT_EQ(TwoSidedResultHeader() + rows.result, *ReadFile(compared->result_path));
}

TEST(TwoSided, TheFloorIsThatOfTheDevicesType) {
  DetailsRow target = Row("sum"), golden = Row("sum");
  target.output.rmse = Number{3e-3};
  const auto ratio_of = [&](const char* dtype) {
    target.output.device_dtype = dtype;
    return JudgePair(target, golden).rmse.value->value;
  };
  EXPECT_DOUBLE_EQ(ratio_of("torch.float16"), 3e-3 * 2048);
  EXPECT_DOUBLE_EQ(ratio_of("torch.bfloat16"), 3e-3 * 256);
  EXPECT_DOUBLE_EQ(ratio_of("torch.float32"), 3e-3 * 16384);
}

TEST(TwoSided, TheBalanceOfErrorsDoesNotDecide) {
  DetailsRow target = Row("sum"), golden = Row("sum");
  golden.output.error_balance = Number{0.1};
  target.output.error_balance = Number{0.3};
  const TwoSidedRow row = JudgePair(target, golden);
  EXPECT_EQ(row.error_balance.status, CheckStatus::kError);
  EXPECT_EQ(row.status, CheckStatus::kPass);
}

TEST(TwoSided, OneSidedNanOrInfIsAnError) {
  struct Case {
    double target, golden;
    CheckStatus expected;
  };
  for (const Case& one :
       {Case{kInf, kInf, CheckStatus::kPass}, Case{kNan, kNan, CheckStatus::kPass},
        Case{kInf, -kInf, CheckStatus::kError}, Case{kNan, 1, CheckStatus::kError},
        Case{1, kNan, CheckStatus::kError}, Case{kNan, kInf, CheckStatus::kError}}) {
    DetailsRow target = Row("sum"), golden = Row("sum");
    target.output.max_rel_error = Number{one.target};
    golden.output.max_rel_error = Number{one.golden};
    const TwoSidedRow row = JudgePair(target, golden);
    EXPECT_EQ(row.status, one.expected) << one.target << one.golden;
    EXPECT_TRUE(std::isnan(row.max_rel_error.value->value));
    EXPECT_NE(row.message.find("largest relative error is"), std::string::npos);
    EXPECT_EQ(row.excess, one.expected == CheckStatus::kError ? kInf : 0);
  }
}

TEST(TwoSided, NanAmongTheValuesOfTheTargetAloneIsAnError) {
  DetailsRow target = Row("sum"), golden = Row("sum");
  target.output.cosine = Number{kNan};
  golden.output.cosine = Number{1};
  const TwoSidedRow row = JudgePair(target, golden);
  EXPECT_EQ(row.status, CheckStatus::kError);
  EXPECT_EQ(row.excess, kInf);
  EXPECT_NE(row.reason.find("NaN or infinity is among the values on the target alone"),
            std::string::npos);
  golden.output.cosine = Number{kNan};
  EXPECT_EQ(JudgePair(target, golden).status, CheckStatus::kPass);
  target.output.cosine = Number{1};
  EXPECT_EQ(JudgePair(target, golden).status, CheckStatus::kPass);
}

TEST(TwoSided, SharesOfTheTargetMustBeZero) {
  DetailsRow target = Row("add");
  target.output.inf_nan_error_ratio = target.output.rel_error_ratio = Number{0};
  target.output.abs_error_ratio = Number{0.002};
  TwoSidedRow row = JudgePair(target, Row("add"));
  EXPECT_EQ(row.status, CheckStatus::kError);
  EXPECT_EQ(row.inf_nan.status, CheckStatus::kPass);
  EXPECT_EQ(row.abs_error.status, CheckStatus::kError);
  EXPECT_FALSE(row.rmse.value);
  target.output.abs_error_ratio = Number{kNan};
  EXPECT_EQ(JudgePair(target, Row("add")).status, CheckStatus::kError);
  target.output.abs_error_ratio = Number{.value = 0, .is_integer = true};
  EXPECT_EQ(JudgePair(target, Row("add")).status, CheckStatus::kPass);
}

TEST(TwoSided, BinaryForNamesAndForIntegers) {
  DetailsRow target = Row("relu");
  target.output.error_rate = Number{1e-9};
  EXPECT_EQ(JudgePair(target, Row("relu")).status, CheckStatus::kError);
  target.output.name = "Torch.sum.0.forward.output.0";
  EXPECT_EQ(JudgePair(target, Row("sum")).status, CheckStatus::kPass);  // by the benchmark
  target.output.device_dtype = "torch.int64";
  EXPECT_EQ(JudgePair(target, Row("sum")).status, CheckStatus::kError);
  target.output.error_rate = Number{0};
  EXPECT_EQ(JudgePair(target, Row("sum")).status, CheckStatus::kPass);
}

TEST(TwoSided, ThousandthsHaveALeastShare) {
  DetailsRow target = Row("conv2d");
  for (const auto& [share, expected] :
       {std::pair(0.999, CheckStatus::kPass), std::pair(0.9989, CheckStatus::kError),
        std::pair(kNan, CheckStatus::kError)}) {
    target.output.thousandth = Number{share};
    EXPECT_EQ(JudgePair(target, Row("conv2d")).status, expected) << share;
  }
}

DetailsRow UlpRow(double mean, double proportion, const char* dtype) {
  DetailsRow row = Row("matmul");
  row.output.device_dtype = dtype;
  row.output.mean_ulp = Number{mean};
  row.output.ulp_proportion = Number{proportion};
  return row;
}

TEST(TwoSided, OneLimitOfTheLastPlaceIsEnough) {
  struct Case {
    const char* dtype;
    double mean, proportion, golden_proportion;
    CheckStatus expected;
  };
  for (const Case& one : {Case{"torch.float32", 63, 0.9, 0.1, CheckStatus::kPass},
                          Case{"torch.float32", 64, 0.049, 0.01, CheckStatus::kPass},
                          Case{"torch.float32", 64, 0.05, 0.06, CheckStatus::kPass},
                          Case{"torch.float32", 64, 0.05, 0.05, CheckStatus::kError},
                          Case{"torch.float16", 1, 0.002, 0.001, CheckStatus::kError},
                          Case{"torch.float16", 1, 0.0009, 0, CheckStatus::kPass},
                          Case{"torch.float16", 1, 0.002, 0.003, CheckStatus::kPass}}) {
    const TwoSidedRow row = JudgePair(UlpRow(one.mean, one.proportion, one.dtype),
                                      UlpRow(1, one.golden_proportion, one.dtype));
    EXPECT_EQ(row.status, one.expected) << one.dtype << one.mean << " " << one.proportion;
    EXPECT_EQ(row.ulp.status, one.expected);
  }
  const TwoSidedRow row =
      JudgePair(UlpRow(kNan, 0, "torch.float32"), UlpRow(1, 0, "torch.float32"));
  EXPECT_EQ(row.status, CheckStatus::kError);
  EXPECT_EQ(row.ulp.status, CheckStatus::kNone);  // the cell stays blank
}

TEST(TwoSided, WithoutACounterpartNothingIsDecided) {
  const TwoSidedRow row = JudgeTwoSided(Row("sum"), nullptr);
  EXPECT_EQ(row.status, CheckStatus::kSkip);
  EXPECT_EQ(row.message, "no-counterpart: the reference has no such output");
  GoldenNumbers twice(Row("sum"));
  twice.repeated = true;
  EXPECT_EQ(JudgeTwoSided(Row("sum"), &twice).status, CheckStatus::kSkip);
  DetailsRow blank = Row("sum");
  blank.output.rmse.reset();
  EXPECT_EQ(JudgePair(Row("sum"), blank).status, CheckStatus::kSkip);
}

TEST(TwoSided, WhatWasNotJudgedOnTheTargetIsSkipped) {
  DetailsRow row = Row("sum");
  row.output.device_dtype = "torch.float64";
  EXPECT_EQ(JudgePair(row, Row("sum")).status, CheckStatus::kSkip);
  row = Row("sum");
  row.output.shape = "(0,)";
  EXPECT_EQ(JudgePair(row, Row("sum")).status, CheckStatus::kSkip);
  row.output.shape = "(10, 20)";
  EXPECT_EQ(JudgePair(row, Row("sum")).status, CheckStatus::kPass);
  row.output.device_dtype.clear();
  row.output.message = "timeout: no answer";
  EXPECT_EQ(JudgePair(row, Row("sum")).message, "timeout: no answer");
  row = Row("sum");
  row.problem = "Status: \"TRUE\" is no status";
  EXPECT_EQ(JudgePair(row, Row("sum")).status, CheckStatus::kSkip);
  row = Row("sum");
  row.output.name = "Torch.sum";
  EXPECT_EQ(JudgePair(row, Row("sum")).status, CheckStatus::kSkip);
}

// Another shape, another type, an unequal number: there is nothing to divide, and it is wrong.
TEST(TwoSided, WrongByItselfIsWrongHereToo) {
  DetailsRow row;
  row.output.name = "Torch.item.0.forward.output.0";
  row.output.device_dtype = "<class 'int'>";
  row.output.status = CheckStatus::kError;
  row.output.message = "3 is not 4";
  EXPECT_EQ(JudgePair(row, row).status, CheckStatus::kError);
  row.output.status = CheckStatus::kPass;
  EXPECT_EQ(JudgePair(row, row).status, CheckStatus::kSkip);
  row.output.error_rate = Number{.value = 0, .is_integer = true};
  EXPECT_EQ(JudgePair(row, row).status, CheckStatus::kPass);
  DetailsRow dropout;
  dropout.output.name = "Functional.dropout.0.forward.output.0";
  dropout.output.device_dtype = "torch.float16";
  dropout.output.status = CheckStatus::kPass;
  EXPECT_EQ(JudgePair(dropout, dropout).status, CheckStatus::kPass);
}

class TwoSidedFiles : public ::testing::Test {
 protected:
  // A details file of these rows.
  std::string Write(const std::string& name, const std::vector<DetailsRow>& rows) {
    std::string text = HeaderText(DetailsHeader(ResultForm::kPyTorch));
    for (const DetailsRow& row : rows) {
      CallOutcome outcome{"", {CheckStatus::kPass, {row.output}, {}}, {}, 0};
      text += RowsOf(outcome, ResultForm::kPyTorch, 14).details;
    }
    const std::string path = directory_.Path(name);
    EXPECT_TRUE(WriteFileAtomically(path, text, /*durable=*/false));
    return path;
  }
  Result<TwoSidedResult> Compare(const std::vector<DetailsRow>& target,
                                 const std::vector<DetailsRow>& golden) {
    options_.target_details = Write("target.csv", target);
    options_.golden_details = Write("golden.csv", golden);
    options_.output_directory = directory_.Path("out");
    return CompareTwoSided(options_);
  }
  static std::vector<csv::Row> Rows(const std::string& path) { return csv::ReadRows(path).value(); }

  testing::TestDirectory directory_;
  TwoSidedOptions options_;
};

TEST_F(TwoSidedFiles, EveryCallHasARowAndEveryOutput) {
  DetailsRow bad = Row("topk");
  bad.output.error_rate = Number{0.5};
  DetailsRow backward = Row("sum");
  backward.output.name = "Torch.sum.0.backward.output.0";
  backward.output.device_dtype = "torch.float64";
  DetailsRow second = Row("sum");
  second.output.name = "Torch.sum.0.forward.output.1";
  // The second output comes behind another call, as several processes write them.
  const auto result = Compare({Row("sum"), bad, second, backward, Row("mean")},
                              {Row("sum"), Row("topk"), second, backward, Row("var")});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->counts.calls, 3U);
  EXPECT_EQ(result->counts.only_target, 1U);
  EXPECT_EQ(result->counts.only_golden, 1U);
  const std::vector<csv::Row> rows = Rows(result->result_path);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0][0], "API Name");
  EXPECT_EQ(rows[1], (csv::Row{"Torch.sum.0", "pass", "SKIP",
                               "unsupported-type: torch.float64 has no reference of higher "
                               "precision"}));
  EXPECT_EQ(rows[2][1], "error");
  EXPECT_EQ(rows[2][2], " ");
  EXPECT_NE(rows[2][3].find("sorted=False"), std::string::npos);
  EXPECT_EQ(rows[3], (csv::Row{"Torch.mean.0", "SKIP", " ",
                               "no-counterpart: the reference has no such output"}));
  const std::vector<csv::Row> details = Rows(result->details_path);
  ASSERT_EQ(details.size(), 6U);
  for (const csv::Row& row : details) EXPECT_EQ(row.size(), 28U);
  EXPECT_EQ(details[1][3], "0.16384000000000");  // 1e-5 / 2^-14
  EXPECT_EQ(details[2][17], "0.50000000000000");
  EXPECT_EQ(TwoSidedAnswer(*result),
            "worst: Torch.topk.0.forward.output.0: share of unequal elements is 0.5 (limit 0); "
            "without a counterpart: 1 on the target, 1 on the reference");
}

// Rows of the reference that stand twice, types that are not compared and dropout cost no other
// output its verdict.
TEST_F(TwoSidedFiles, AnOutputThatCannotBeComparedIsSkippedAlone) {
  DetailsRow wide = Row("sum"), second = Row("sum"), dropout;
  wide.output.name = "Torch.sum.0.forward.output.1";
  wide.output.device_dtype = "torch.float64";
  second.output.name = "Torch.sum.0.forward.output.2";
  second.output.rmse = Number{3e-4};
  dropout.output.name = "Functional.dropout.0.forward.output.0";
  dropout.output.device_dtype = "torch.float16";
  dropout.output.status = CheckStatus::kPass;
  dropout.output.message = "50 % of the elements are zero on the benchmark, 59 % on the device.";
  DetailsRow better = second;
  better.output.rmse = Number{1e-5};
  const auto result = Compare({Row("mean"), Row("sum"), second, wide, dropout},
                              {Row("mean"), Row("mean"), Row("sum"), better, wide, dropout});
  ASSERT_TRUE(result) << result.error().message();
  const std::vector<csv::Row> details = Rows(result->details_path);
  ASSERT_EQ(details.size(), 6U);
  std::vector<std::string> statuses;
  for (size_t i = 1; i < details.size(); ++i) statuses.push_back(details[i][25]);
  EXPECT_EQ(statuses, (std::vector<std::string>{"SKIP", "pass", "error", "SKIP", "pass"}));
  EXPECT_EQ(details[1][27], "no-counterpart: the reference has several rows of this name");
  const std::vector<csv::Row> rows = Rows(result->result_path);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[1][1], "SKIP");
  EXPECT_EQ(rows[2][0], "Torch.sum.0");
  EXPECT_EQ(rows[2][1], "error");
  EXPECT_EQ(rows[3], (csv::Row{"Functional.dropout.0", "pass", " ", ""}));
}

TEST_F(TwoSidedFiles, TheAnswerNeverPraisesWhatWasNotCompared) {
  const auto good = Compare({Row("sum")}, {Row("sum")});
  EXPECT_EQ(TwoSidedAnswer(*good),
            "no API is worse than on the reference device: 1 output compared");
  const auto none = Compare({Row("sum")}, {});
  EXPECT_EQ(TwoSidedAnswer(*none),
            "nothing was compared: 1 output without a decision; without a counterpart: 1 on the "
            "target");
  EXPECT_EQ(TwoSidedAnswer(*Compare({Row("sum"), Row("mean")}, {Row("sum"), Row("var")})),
            "no API is worse than on the reference device: 1 of 2 outputs compared; without a "
            "counterpart: 1 on the target, 1 on the reference");
  EXPECT_EQ(TwoSidedAnswer(*Compare({}, {})), "nothing was compared: 0 outputs without a decision");
}

TEST_F(TwoSidedFiles, ANameThatIsNoneIsSkippedInBothFiles) {
  DetailsRow row = Row("sum");
  row.output.name = "strange";
  const auto result = Compare({row}, {row});
  EXPECT_EQ(Rows(result->result_path)[1][0], "strange");
  EXPECT_EQ(Rows(result->result_path)[1][1], "SKIP");
  EXPECT_EQ(Rows(result->result_path)[1][2], "SKIP");
  EXPECT_EQ(Rows(result->details_path)[1][25], "SKIP");
}

TEST_F(TwoSidedFiles, WhatIsNoDetailsFileIsRefused) {
  ASSERT_TRUE(Compare({Row("sum")}, {Row("sum")}));
  ASSERT_TRUE(WriteFileAtomically(options_.golden_details, "API Name,Status\n", false));
  const auto result = CompareTwoSided(options_);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message().find("no column DEVICE Dtype"), std::string::npos);
  options_.target_details = directory_.Path("none.csv");
  EXPECT_FALSE(CompareTwoSided(options_));
}

TEST_F(TwoSidedFiles, AFullDiskLeavesNoFileUnderItsName) {
  ASSERT_TRUE(Compare({Row("sum")}, {Row("sum")}));
  bool fired = true;
  for (int fail_at = 0; fired; ++fail_at) {
    fs::remove_all(options_.output_directory);
    plumbline::Status status;
    {
      const testing::FailingCalls failing(fail_at, ENOSPC);
      const auto result = CompareTwoSided(options_);
      if (!result) status = result.error();
      fired = testing::FailingCalls::fired();
    }
    if (!status) {
      EXPECT_EQ(status.error().code(), ErrorCode::kIo);
      continue;
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(options_.output_directory), {}), 2) << fail_at;
  }
}

}  // namespace
}  // namespace plumbline::precheck::two_sided_test
