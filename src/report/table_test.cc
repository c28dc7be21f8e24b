#include "report/table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "base/file/file.h"
#include "base/text/csv.h"

namespace plumbline::report {
namespace {

Comparison OneRow(CompareMode mode) {
  Comparison comparison;
  comparison.mode = mode;
  comparison.calls.push_back({"f", "f", 0, 1, Verdict::kSame, "", ""});
  ComparedRow row;
  Item item;
  item.name = "f.input.0";
  item.dtype = "torch.float32";
  item.shape_text = "[2]";
  item.statistics = {1.5, int64_t{2}, std::monostate(), true};
  row.target = item;
  row.golden = item;
  comparison.rows.push_back(row);
  return comparison;
}

std::string CellNamed(const Comparison& comparison, std::string_view name) {
  for (const Column& column : ColumnsOf(comparison)) {
    if (column.name == name) return CellText(column.cell({comparison, comparison.rows[0], true}));
  }
  return "(no such column)";
}

TEST(Table, ColumnsOfRelease122PlusVerdict) {
  std::string names;
  for (const Column& column : ColumnsOf(OneRow(CompareMode::kDigest))) {
    names += std::string(column.name) + "|";
  }
  EXPECT_EQ(names,
            "NPU Name|Bench Name|NPU Dtype|Bench Dtype|NPU Tensor Shape|Bench Tensor Shape|"
            "NPU MD5|BENCH MD5|Result|Verdict|Reason|");
  EXPECT_EQ(ColumnsOf(OneRow(CompareMode::kStatistics)).size(), 26u);
  EXPECT_EQ(ColumnsOf(OneRow(CompareMode::kTensor)).size(), 24u);
}

TEST(Table, StatisticsAreSpelledAsUpstreamDoes) {
  const Comparison comparison = OneRow(CompareMode::kStatistics);
  EXPECT_EQ(CellNamed(comparison, "NPU max"), "1.5");
  EXPECT_EQ(CellNamed(comparison, "NPU min"), "2");
  EXPECT_EQ(CellNamed(comparison, "NPU mean"), "None");
  EXPECT_EQ(CellNamed(comparison, "NPU l2norm"), "True");
}

TEST(Table, NonFiniteNumbersAreTexts) {
  Comparison comparison = OneRow(CompareMode::kStatistics);
  const double inf = std::numeric_limits<double>::infinity();
  comparison.rows[0].target->statistics = {inf, -inf, std::numeric_limits<double>::quiet_NaN(),
                                           0.0};
  EXPECT_EQ(CellNamed(comparison, "NPU max"), "inf\t");
  EXPECT_EQ(CellNamed(comparison, "NPU min"), "-inf\t");
  EXPECT_EQ(CellNamed(comparison, "NPU mean"), "Nan");
}

TEST(Table, DifferencesAndPercentTexts) {
  Comparison comparison = OneRow(CompareMode::kStatistics);
  comparison.rows[0].target->statistics = {5e6 + 0.5, 1.0, std::monostate(), 1.0};
  comparison.rows[0].golden->statistics = {5e6, 0.0, 1.0, 1.0};
  EXPECT_EQ(CellNamed(comparison, "Max diff"), "0.5");
  EXPECT_EQ(CellNamed(comparison, "MaxRelativeErr"), "9.999999999999999e-06%");
  EXPECT_EQ(CellNamed(comparison, "MinRelativeErr"), "N/A");
  EXPECT_EQ(CellNamed(comparison, "Mean diff"), "N/A");
}

TEST(Table, AbsentMetricsSayWhy) {
  Comparison comparison = OneRow(CompareMode::kTensor);
  const auto cosine = [&](Absent absent) {
    comparison.rows[0].tensor = TensorMetrics{.cosine = absent};
    return CellNamed(comparison, "Cosine");
  };
  EXPECT_EQ(cosine(Absent::kShapeMismatch), "shape unmatched");
  EXPECT_EQ(cosine(Absent::kNonFinite), "N/A");
  EXPECT_EQ(cosine(Absent::kZeroNorm), "Nan");
  EXPECT_EQ(cosine(Absent::kUnreadable), "unsupported");
}

TEST(Table, CsvHoldsTheSameCells) {
  const Comparison comparison = OneRow(CompareMode::kStatistics);
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "table_test.csv").string();
  ASSERT_TRUE(WriteCsv(comparison, path));
  const auto rows = csv::Parse(*ReadFile(path));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].size(), ColumnsOf(comparison).size());
  EXPECT_EQ((*rows)[1][0], "f.input.0");
}

TEST(Table, UnwritablePathIsAnError) {
  EXPECT_EQ(WriteCsv(OneRow(CompareMode::kDigest), "/nonexistent/x.csv").error().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::report
