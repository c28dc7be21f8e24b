#include "report/newest_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/csv.h"

namespace plumbline::report {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

std::string Texts(const Recorded& target, const Recorded& golden) {
  const NewestDifference difference = NewestDifferenceOf(target, golden);
  return difference.difference + " " + difference.relative;
}

// Cells as mindstudio-probe 26.2.0 writes them for the same pairs.
TEST(NewestVerdict, DifferencesAsTheReleaseSpellsThem) {
  EXPECT_EQ(Texts(2.0, 2.0), "0 0");
  EXPECT_EQ(Texts(int64_t{4}, int64_t{5}), "-1.0 20.0%");
  EXPECT_EQ(Texts(1.3, 1.0), "0.30000000000000004 30.000000000000004%");
  EXPECT_EQ(Texts(1.0, 0.0), "1.0 inf");
  EXPECT_EQ(Texts(kNan, 1.0), "Nan Nan");
  EXPECT_EQ(Texts(kNan, kNan), "0 0");
  EXPECT_EQ(Texts(kInf, -kInf), "inf inf");
  EXPECT_EQ(Texts(1.0, kInf), "-inf -inf");
  EXPECT_EQ(Texts(1.0, -kInf), "inf inf");
  EXPECT_EQ(Texts(-kInf, 1.0), "-inf -inf");
  EXPECT_EQ(Texts(false, true), "Diff Diff");
  EXPECT_EQ(Texts(std::monostate(), std::monostate()), "0 0");
  EXPECT_EQ(Texts(std::monostate(), 1.0), "Diff Diff");
  EXPECT_EQ(Texts(std::string("npu:0"), std::string("cuda:0")), "N/A N/A");
  EXPECT_EQ(Texts(std::string("mean"), std::string("sum")), "Diff Diff");
}

ComparedRow Row(const std::string& name, double target, double golden) {
  ComparedRow row;
  for (Slot<Item>* side : {&row.target, &row.golden}) {
    Item& item = side->emplace();
    item.name = name;
    item.is_tensor = true;
    item.dtype = "torch.float32";
    item.shape_text = "[2]";
    item.shape = Shape{2};
    item.statistics.fill(side == &row.target ? target : golden);
  }
  row.verdict = Verdict::kWithinNoise;
  return row;
}

// "pass", "warning norm-grows" ... of each row of one call.
std::string Results(CompareMode mode, std::vector<ComparedRow> rows,
                    const std::string& call = "Torch.f.0.forward") {
  Comparison comparison;
  comparison.mode = mode;
  comparison.rows = std::move(rows);
  ComparedCall& compared = comparison.calls.emplace_back();
  compared.target_name = compared.golden_name = call;
  compared.row_count = static_cast<uint32_t>(comparison.rows.size());
  std::string text;
  for (const NewestResult& result : NewestResultsOf(comparison, compared)) {
    static constexpr const char* kLevels[] = {"pass", "warning", "error"};
    text += kLevels[static_cast<size_t>(result.level)];
    for (const std::string& message : result.messages) {
      text +=
          " " + message.substr(message.find('[') + 1, message.find(']') - message.find('[') - 1);
    }
    text += "; ";
  }
  return text;
}

TEST(NewestVerdict, NormRules) {
  const auto statistics = [](double input, double output) {
    return Results(CompareMode::kStatistics, {Row("Torch.f.0.forward.input.0", input, 1.0),
                                              Row("Torch.f.0.forward.output.0", output, 1.0)});
  };
  EXPECT_EQ(statistics(1.0, 1.0), "pass; pass; ");
  EXPECT_EQ(statistics(1.0, 1.6), "pass; error norm norm-grows; ");
  EXPECT_EQ(statistics(1.001, 1.3), "pass; warning norm-grows; ");
  EXPECT_EQ(statistics(1.001, 1.005), "pass; pass; ");
  EXPECT_EQ(statistics(1.2, 1.9), "pass; pass; ");
  EXPECT_EQ(statistics(1.0, kNan), "pass; error naninf; ");
}

TEST(NewestVerdict, FormRules) {
  ComparedRow row = Row("Torch.f.0.forward.input.0", 1.0, 1.0);
  row.target->requires_grad = true;
  row.golden->requires_grad = false;
  row.target->dtype = "torch.float16";
  row.target->shape_text = "[1, 2]";
  EXPECT_EQ(Results(CompareMode::kStatistics, {row}), "error requires-grad dtype shape; ");
  ComparedRow across = Row("Mint.f.0.forward.input.0", 1.0, 1.0);
  across.target->dtype = "Float32";
  EXPECT_EQ(Results(CompareMode::kStatistics, {across}), "pass; ");  // an error upstream
  ComparedRow scalar = Row("Torch.f.0.forward.input.1", 1.0, 2.0);
  for (Slot<Item>* side : {&scalar.target, &scalar.golden}) {
    (*side)->dtype = "<class 'int'>";
    (*side)->shape_text = "[]";
  }
  EXPECT_EQ(Results(CompareMode::kStatistics, {scalar}), "error scalar; ");
}

TEST(NewestVerdict, TensorRulesUseTheDocumentedLimit) {
  ComparedRow input = Row("Torch.f.0.forward.input.0", 1.0, 1.0);
  input.tensor = TensorMetrics{.cosine = 1.0, .below_thousandth_ratio = 1.0, .element_count = 2};
  ComparedRow output = Row("Torch.f.0.forward.output.0", 1.0, 1.0);
  output.tensor = TensorMetrics{.cosine = 0.8, .below_thousandth_ratio = 0.5, .element_count = 2};
  EXPECT_EQ(Results(CompareMode::kTensor, {input, output}), "pass; error thousandth cosine; ");
}

TEST(NewestVerdict, SomeCallsAreNotJudged) {
  const std::vector<ComparedRow> rows = {Row("x.input.0", 1.0, 1.0), Row("x.output.0", 9.0, 1.0)};
  EXPECT_EQ(Results(CompareMode::kStatistics, rows, "Tensor.to.0.forward"), "pass; pass; ");
  EXPECT_EQ(Results(CompareMode::kStatistics, rows, "Distributed.all_to_all_single.0.forward"),
            "pass; pass; ");
}

TEST(NewestVerdict, DigestsDiffer) {
  ComparedRow row = Row("Torch.f.0.forward.output.0", 1.0, 1.0);
  row.target->digest = "00000001";
  row.golden->digest = "00000002";
  EXPECT_EQ(Results(CompareMode::kDigest, {row}), "error crc; ");
  row.golden->digest = "";
  EXPECT_EQ(Results(CompareMode::kDigest, {row}), "warning crc; ");
}

TEST(NewestVerdict, NothingThatProvesNothingPasses) {
  ComparedRow alone = Row("Torch.f.0.forward.output.0", 1.0, 1.0);
  alone.golden.reset();
  alone.verdict = Verdict::kNotComparable;
  alone.reason = "no-golden";
  alone.notes = std::vector<Note>{{"no-bench", "The golden side has no such call."}};
  EXPECT_EQ(Results(CompareMode::kStatistics, {alone}), "warning no-golden no-bench; ");
  alone.reason = "shape-differs";
  EXPECT_EQ(Results(CompareMode::kStatistics, {alone}), "error shape-differs no-bench; ");
  ComparedRow infinite = Row("Torch.f.0.forward.output.0", 1.0, kInf);
  infinite.verdict = Verdict::kBroken;
  infinite.reason = "nonfinite-golden";
  EXPECT_EQ(Results(CompareMode::kStatistics, {infinite}, "Tensor.to.0.forward"),
            "error nonfinite-golden; ");
  for (const char* reason : {"empty", "zero-both", "unreadable", "no-data", "nonfinite-both"}) {
    ComparedRow row = Row("Torch.f.0.forward.output.0", 1.0, 1.0);
    row.verdict = Verdict::kNotComparable;
    row.reason = reason;
    EXPECT_EQ(Results(CompareMode::kTensor, {row}), std::string("warning ") + reason + "; ");
  }
}

TEST(NewestTable, HeadersOfTheThreeModes) {
  Comparison comparison;
  comparison.mode = CompareMode::kStatistics;
  EXPECT_EQ(NewestHeader(comparison).size(), 8u + 8 + 8 + 3 + 2);
  comparison.mode = CompareMode::kDigest;
  EXPECT_EQ(NewestHeader(comparison).size(), 8u + 2 + 3 + 2);
  comparison.mode = CompareMode::kTensor;
  comparison.stacks = {{}};
  EXPECT_EQ(NewestHeader(comparison).size(), 8u + 6 + 8 + 3 + 1 + 1 + 2);
}

TEST(NewestTable, MoreRowsThanAFileHoldsAreParts) {
  const plumbline::testing::TestDirectory directory;
  const std::string path = directory.Path("compare_result_20260131120000.csv");
  Comparison comparison;
  for (uint32_t call = 0; call < 4; ++call) {  // 1, 2, 3 and 1 rows: a call is cut in two
    const uint32_t count = call % 3 + 1;
    ComparedCall& added = comparison.calls.emplace_back();
    added.first_row = static_cast<uint32_t>(comparison.rows.size());
    added.row_count = count;
    for (uint32_t i = 0; i < count; ++i) {
      comparison.rows.push_back(Row(fmt::format("Torch.f.{}.forward.output.{}", call, i), 1, 1));
    }
  }
  EXPECT_EQ(NewestCsvPaths(comparison, path, 7), std::vector<std::string>{path});
  ASSERT_TRUE(WriteNewestCsv(comparison, path, 3));
  const std::vector<std::string> parts = NewestCsvPaths(comparison, path, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2], directory.Path("compare_result_20260131120000_part_3.csv"));
  EXPECT_EQ(ListDirectory(directory.path())->size(), 3u);
  std::vector<std::string> names;
  for (const std::string& part : parts) {
    const std::vector<csv::Row> rows = csv::Parse(ReadFile(part).value()).value();
    EXPECT_EQ(rows[0][0], "NPU Name");
    EXPECT_LE(rows.size(), 4u);
    for (size_t i = 1; i < rows.size(); ++i) names.push_back(rows[i][0]);
  }
  ASSERT_EQ(names.size(), comparison.rows.size());
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(names[i], std::string(comparison.rows[i].target->name));
}

}  // namespace
}  // namespace plumbline::report
