// The rows of a comparison as columns, for programs that compute with them.

#ifndef PLUMBLINE_REPORT_ROW_COLUMNS_H_
#define PLUMBLINE_REPORT_ROW_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"
#include "report/row_cells.h"

namespace plumbline::report {

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

// The columns of the result database's table `rows`.
std::shared_ptr<const RowColumns> MakeRowColumns(const Comparison& comparison);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_ROW_COLUMNS_H_
