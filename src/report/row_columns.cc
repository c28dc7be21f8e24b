#include "report/row_columns.h"

#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

namespace plumbline::report {
namespace {

using sqlite_table::Cell;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::optional<double> RealOf(const Cell& cell) {
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&cell)) return static_cast<double>(*integer);
  const auto* text = std::get_if<std::string_view>(&cell);
  if (text != nullptr && *text == "nan") return kNan;  // a number of the result, not a missing one
  return std::nullopt;
}

// Fills one column.
class ColumnBuilder {
 public:
  ColumnBuilder(CellColumn declared, size_t rows) {
    column_.name = std::move(declared.name);
    column_.kind = declared.kind;
    column_.valid.resize((rows + 7) / 8);
  }

  void Add(size_t row, const Cell& cell) {
    if (AddValue(cell)) {
      uint8_t& bits = column_.valid[row / 8];
      bits = static_cast<uint8_t>(bits | 1U << (row % 8));
    } else {
      ++column_.null_count;
    }
  }

  RowColumn Take() { return std::move(column_); }

 private:
  // Adds the value or what stands for none; false: there is none.
  bool AddValue(const Cell& cell) {
    const auto* text = std::get_if<std::string_view>(&cell);
    switch (column_.kind) {
      case CellKind::kInteger: {
        const auto* integer = std::get_if<int64_t>(&cell);
        column_.integers.push_back(integer == nullptr ? 0 : *integer);
        return integer != nullptr;
      }
      case CellKind::kReal:
      case CellKind::kStatistic: {
        const std::optional<double> real = RealOf(cell);
        column_.reals.push_back(real.value_or(kNan));
        return real.has_value();
      }
      case CellKind::kText:
        column_.texts.Add(text == nullptr ? std::string_view() : *text);
        break;
      case CellKind::kWord:
        column_.codes.push_back(text == nullptr ? 0 : CodeOf(*text));
        break;
    }
    return text != nullptr;
  }

  int32_t CodeOf(std::string_view word) {
    const auto [at, is_new] =
        codes_.try_emplace(std::string(word), static_cast<int32_t>(codes_.size()));
    if (is_new) column_.texts.Add(word);
    return at->second;
  }

  RowColumn column_;
  std::unordered_map<std::string, int32_t> codes_;
};

}  // namespace

std::shared_ptr<const RowColumns> MakeRowColumns(const Comparison& comparison) {
  const size_t rows = comparison.rows.size();
  std::vector<ColumnBuilder> builders;
  for (CellColumn& column : CellColumnsOf(comparison.mode)) {
    builders.emplace_back(std::move(column), rows);
  }
  RowCells cells(comparison);
  for (size_t row = 0; row < rows; ++row) {
    const std::vector<Cell>& of_row = cells.Of(row);
    for (size_t i = 0; i < builders.size(); ++i) builders[i].Add(row, of_row[i]);
  }
  auto result = std::make_shared<RowColumns>();
  result->row_count = rows;
  for (ColumnBuilder& builder : builders) result->columns.push_back(builder.Take());
  return result;
}

}  // namespace plumbline::report
