// The cells of one row of a comparison for programs: the columns of the table `rows` of the result
// database, and of the row columns of the Python package.

#ifndef PLUMBLINE_REPORT_ROW_CELLS_H_
#define PLUMBLINE_REPORT_ROW_CELLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "formats/sqlite_table.h"
#include "plumbline/compare.h"

namespace plumbline::report {

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

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_ROW_CELLS_H_
