#include "operators/operator_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/file/test_directory.h"
#include "base/process/parallel.h"
#include "base/text/csv.h"

namespace plumbline::operators {
namespace {

// More rows than are held at a time, with and without values and addresses.
OperatorComparison Many(size_t rows) {
  OperatorComparison comparison;
  comparison.has_sequence = true;
  comparison.with_overflow = true;
  comparison.algorithms = {"One", "Two"};
  for (size_t i = 0; i < rows; ++i) {
    PairedOperator& pair = comparison.pairs.emplace_back();
    pair.index = i;
    pair.sequence = static_cast<int64_t>(2 * i);
    pair.op_type = i % 3 == 0 ? "" : "Conv2D";
    pair.target_name = "an operator with a long name, number " + std::to_string(i);
    OperatorRow& row = comparison.rows.emplace_back();
    row.pair = i;
    row.golden_name = "golden" + std::to_string(i);
    row.target_address = i % 2 == 0 ? 0 : 1234567890123456789;
    row.golden_address = i;
    if (i % 5 != 0) row.values = {"0." + std::to_string(i), "a value, quoted"};
    row.overflow = "NO";
    row.reason = i % 5 == 0 ? "odd" : "";
  }
  return comparison;
}

TEST(OperatorCsv, EveryRowIsThereInItsOrder) {
  constexpr size_t kRows = 17000;
  const testing::TestDirectory directory;
  const OperatorComparison comparison = Many(kRows);
  ASSERT_TRUE(WriteOperatorTable(comparison, directory.Path("all.csv"), true));
  const auto rows = csv::ReadRows(directory.Path("all.csv"));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), kRows + 1);
  EXPECT_EQ(rows->front().size(), 18U);
  for (size_t i = 0; i < kRows; ++i) {
    const csv::Row& row = (*rows)[i + 1];
    const bool has_values = i % 5 != 0;
    ASSERT_EQ(row.size(), rows->front().size());
    EXPECT_EQ(row[0], std::to_string(i));
    EXPECT_EQ(row[1], std::to_string(2 * i));
    EXPECT_EQ(row[2], i % 3 == 0 ? "NaN" : "Conv2D");
    EXPECT_EQ(row[3], comparison.pairs[i].target_name);
    EXPECT_EQ(row[5], i % 2 == 0 ? "NaN" : "1234567890123456789");
    EXPECT_EQ(row[6], "golden" + std::to_string(i));
    EXPECT_EQ(row[8], i == 0 ? "NaN" : std::to_string(i));
    EXPECT_EQ(row[12], has_values ? "0." + std::to_string(i) : "NaN");
    EXPECT_EQ(row[13], has_values ? "a value, quoted" : "NaN");
    EXPECT_EQ(row[14], has_values ? "" : "odd");
  }
}

TEST(OperatorCsv, BytesAreTheSameForEveryNumberOfThreads) {
  const testing::TestDirectory directory;
  const OperatorComparison comparison = Many(1000);
  for (const bool is_csv : {true, false}) {
    std::string expected;
    for (const int threads : {1, 2, 8}) {
      const std::string path = directory.Path("threads" + std::to_string(threads));
      RunWithThreads(threads, [&] { EXPECT_TRUE(WriteOperatorTable(comparison, path, is_csv)); });
      const Result<std::string> text = ReadFile(path);
      ASSERT_TRUE(text);
      if (expected.empty()) expected = *text;
      EXPECT_TRUE(*text == expected) << threads;
    }
    EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 1001);
  }
}

}  // namespace
}  // namespace plumbline::operators
