// The result table: columns declared once, written as CSV, XLSX and JSON from that declaration;
// and its rows as cells and columns for programs.

#ifndef PLUMBLINE_REPORT_TABLE_H_
#define PLUMBLINE_REPORT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/sqlite/sqlite_table.h"
#include "formats/table/xlsx.h"
#include "measure/compared_row.h"
#include "plumbline/compare.h"
#include "report/html_report.h"

namespace plumbline::report {

// Shown as a text: the number with a percent sign behind it.
struct Percent {
  double value = 0;
};

// A cell: blank, a number or a text, as upstream's workbook has it. Not-finite numbers are texts.
// A view is of the row's own texts or of the program's.
using Cell = std::variant<std::monostate, int64_t, double, std::string_view, std::string, Percent>;

// What a column may look at.
struct RowContext {
  const Comparison& comparison;
  const ComparedRow& row;
  bool first_of_call = false;
  StatisticDifferences differences = row.statistics();
  const StackTexts* stacks = nullptr;  // spelled ahead; null: none are
};

enum class Side : uint8_t { kTarget, kGolden };

// What stands in the row on a side; null where nothing does.
inline const Item* ItemOn(const RowContext& context, Side side) {
  const Slot<Item>& item = measure::SideOf(context.row, side == Side::kTarget);
  return item ? &*item : nullptr;
}

struct Column {
  std::string_view name;
  Cell (*cell)(const RowContext&);
};

// The columns of a comparison, in order: upstream's of release 1.2.2 for its mode, then plumbline's
// `Verdict` and `Reason`. Includes the stack column exactly if the comparison holds stacks.
std::vector<Column> ColumnsOf(const Comparison& comparison);

// Appends the text of a cell in a CSV file, unquoted; numbers as Python spells them.
void AppendCellText(const Cell& cell, std::string& out);
std::string CellText(const Cell& cell);

// The next cell of the open row of a workbook.
Status WriteCell(const Cell& cell, xlsx::Writer& writer);

Status WriteCsv(const Comparison& comparison, const std::string& path);
Status WriteCsv(const Comparison& comparison, const std::vector<Column>& columns,
                const std::string& path);
Status WriteXlsx(const Comparison& comparison, const std::string& path);
Status WriteXlsx(const Comparison& comparison, const std::vector<Column>& columns,
                 const std::string& path);

// The cells of one row of a comparison for programs: the columns of the table `rows` of the result
// database, and of the row columns of the Python package.

// What a column holds; null where there is nothing.
enum class CellKind : uint8_t {
  kInteger,
  kReal,
  kStatistic,  // as recorded: a number mostly, else the text of it
  kText,
  kWord,  // a text of which there are few, such as a verdict
};

struct CellColumn {
  std::string name;
  CellKind kind = CellKind::kText;
};

// The columns of a comparison of this mode, in order.
std::vector<CellColumn> CellColumnsOf(CompareMode mode);

// Makes the cells of one row after the other. NaN is the text "nan", or null where it means that
// there is no number.
class RowCells {
 public:
  explicit RowCells(const Comparison& comparison) : comparison_(comparison) {}
  // Valid until the next call.
  const std::vector<sqlite_table::Cell>& Of(size_t row);

 private:
  void AddMetrics(const ComparedRow& row);

  const Comparison& comparison_;
  std::vector<sqlite_table::Cell> cells_;
  std::string notes_;
};

// The rows of a comparison as columns, for programs that compute with them.

// Texts one behind the other; text i ends at ends[i + 1].
struct TextList {
  std::string characters;
  std::vector<int64_t> ends{0};

  [[nodiscard]] size_t size() const { return ends.size() - 1; }
  [[nodiscard]] std::string_view operator[](size_t i) const {
    return std::string_view(characters)
        .substr(static_cast<size_t>(ends[i]), static_cast<size_t>(ends[i + 1] - ends[i]));
  }
  void Add(std::string_view text) {
    characters += text;
    ends.push_back(static_cast<int64_t>(characters.size()));
  }
};

// One column, in the memory layout of Apache Arrow. Which member holds the values follows from the
// kind; where there is none, it holds zero, NaN or an empty text.
struct RowColumn {
  std::string name;
  CellKind kind = CellKind::kText;
  size_t null_count = 0;
  std::vector<uint8_t> valid;     // a bit per row, the lowest first
  std::vector<int64_t> integers;  // kInteger
  std::vector<double> reals;      // kReal, kStatistic: what is recorded as text is null
  std::vector<int32_t> codes;     // kWord: index into `texts`
  TextList texts;                 // kText: per row; kWord: the words

  [[nodiscard]] bool IsNull(size_t row) const { return (valid[row / 8] >> (row % 8) & 1) == 0; }
};

struct RowColumns {
  size_t row_count = 0;
  std::vector<RowColumn> columns;
};

// The cells of one row, valid until the next call.
using CellsOfRow = std::function<const std::vector<sqlite_table::Cell>&(size_t row)>;
// Columns of any rows. Cells are as RowCells makes them: a text "nan" is a number.
std::shared_ptr<const RowColumns> MakeRowColumns(std::vector<CellColumn> columns, size_t row_count,
                                                 const CellsOfRow& cells);
// The columns of the result database's table `rows`.
std::shared_ptr<const RowColumns> MakeRowColumns(const Comparison& comparison);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_TABLE_H_
