// The result table as the newest upstream release has it (docs/reference/compare-newest.md).

#ifndef PLUMBLINE_REPORT_NEWEST_TABLE_H_
#define PLUMBLINE_REPORT_NEWEST_TABLE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::report {

// Differences and results of rows as that release spells them.

// Texts of one statistic's two columns, and the relative error as a ratio (infinite for "inf")
// where it is a number.
struct NewestDifference {
  std::string difference, relative;
  std::optional<double> ratio;
};
NewestDifference NewestDifferenceOf(const Recorded& target, const Recorded& golden);

// "NPU max" and the others as that release writes them.
std::string NewestStatisticText(const Recorded& recorded);

enum class NewestLevel : uint8_t { kPass, kWarning, kError };
struct NewestResult {
  NewestLevel level = NewestLevel::kPass;
  std::vector<std::string> messages;  // "error: [shape] The shapes differ."
};
// One result per row of the call. Rows that upstream passes although one side has no counterpart,
// no readable data, NaN, infinities, no elements or nothing but zeros are warnings or errors.
std::vector<NewestResult> NewestResultsOf(const Comparison& comparison, const ComparedCall& call);

// Of mode tensor the metrics of the tensors by their columns; and whether both sides require
// gradients ("Requires_grad Consistent").
struct NewestMetric {
  std::string_view column;
  std::string text;
};
std::vector<NewestMetric> NewestMetricsOf(const Comparison& comparison, const ComparedRow& row);

// The csv file and the workbook with its columns.

// Columns of upstream 26.2.0 for the comparison's mode, then `Verdict` and `Reason`.
std::vector<std::string_view> NewestHeader(const Comparison& comparison);

// Rows of one file; the release cuts more into parts.
inline constexpr size_t kNewestCsvRows = 1'000'000;

// Where the rows go: `path`, or, above `most_rows`, "<stem>_part_1.csv", "<stem>_part_2.csv", ...
std::vector<std::string> NewestCsvPaths(const Comparison& comparison, const std::string& path,
                                        size_t most_rows = kNewestCsvRows);

// Rows in the order of the comparison, in the files of NewestCsvPaths(), each with the header. A
// file appears complete or not at all; when one fails, no other part stays.
Status WriteNewestCsv(const Comparison& comparison, const std::string& path,
                      size_t most_rows = kNewestCsvRows);

// The same as a workbook, in one sheet as that release has it: metrics, statistics and differences
// that are finite are numbers, all else texts. Rows that are errors are red, warnings yellow.
Status WriteNewestXlsx(const Comparison& comparison, const std::string& path);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_NEWEST_TABLE_H_
