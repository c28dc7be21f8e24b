// statistic.csv of MindSpore's dumps: one row per tensor of a kernel (docs/formats/graph_dump.md).

#ifndef PLUMBLINE_FORMATS_TABLE_STATISTIC_CSV_H_
#define PLUMBLINE_FORMATS_TABLE_STATISTIC_CSV_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::statistic_csv {

// Columns that every table begins with, by position.
enum FixedColumn : size_t {
  kOpType,
  kOpName,
  kTask,
  kStream,
  kTimestamp,
  kIo,
  kSlot,
  kKeyCount,  // what stands before tells one tensor from every other
  kDataSize = kKeyCount,
  kDataType,
  kShape,
  kFixedCount
};
std::span<const std::string_view> FixedColumns();  // their names

inline constexpr std::string_view kMax = "Max Value", kMin = "Min Value", kMean = "Avg Value",
                                  kNorm = "L2Norm Value", kMd5 = "MD5", kSha1 = "SHA1";

// The column of an item of statistic_category: "Max Value" of "max". Nothing for other texts.
std::optional<std::string_view> ColumnOf(std::string_view item);
// Without items that mean the same column as an earlier one.
std::vector<std::string> WithoutRepeats(std::span<const std::string> items);

// The first line, which has no comma at its end.
std::string HeaderLine(std::span<const std::string> items);

// "(2,3)", in the quotes that a shape has in the table.
std::string ShapeCell(std::span<const int64_t> shape);
// Appends a row as MindSpore writes it, with a comma at its end. A cell that holds a comma, a quote
// or a line break is quoted; `cells` of shapes come from ShapeCell().
void AppendRow(std::span<const std::string_view> cells, std::string& out);

}  // namespace plumbline::statistic_csv

#endif  // PLUMBLINE_FORMATS_TABLE_STATISTIC_CSV_H_
