// The result table: columns declared once, written as CSV, XLSX and JSON from that declaration.

#ifndef PLUMBLINE_REPORT_TABLE_H_
#define PLUMBLINE_REPORT_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/xlsx.h"
#include "measure/compared_row.h"
#include "plumbline/compare.h"
#include "report/stack_texts.h"

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

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_TABLE_H_
