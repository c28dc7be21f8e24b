// Tables that commands wrote, of this program or of msprobe: results of comparisons, of pre-checks,
// of searches for overflows, as CSV, workbook or JSON.

#ifndef PLUMBLINE_VIEW_TABLES_TABLE_FILE_H_
#define PLUMBLINE_VIEW_TABLES_TABLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "view/store/node_columns.h"
#include "view/store/text_pool.h"

namespace plumbline::view {

// Of a file by its name: .csv and .xlsx, and the JSON of overflows and of comparisons.
bool IsTableName(std::string_view name);

struct TableFile {
  std::string path, name;  // below the directory that was named
};
// The file itself; of a directory all tables in it and in the directories right below, those over
// all ranks first; a workbook beside a CSV of its name is left out. The JSON of a comparison stands
// for the table beside it. kNotFound: there is none.
Result<std::vector<TableFile>> FindTables(const std::string& path);

// The recordings that a comparison was made of, as the JSON beside its table tells.
struct TableRecordings {
  std::string target, golden;
  int64_t step = -1, rank = -1;  // of the table; -1: not told
};
// Nothing where it is none, or they are not there any more.
std::optional<TableRecordings> RecordingsOf(const std::string& path);

// What a comparison answered, as the JSON of its ranks or the one beside its table tells.
struct TableAnswer {
  std::string text;              // "first wrong call: NAME"
  std::string call, item;        // of the first wrong call and its value; empty: there is none
  int64_t step = -1, rank = -1;  // of several; -1: not told
};
std::optional<TableAnswer> AnswerBeside(const std::string& path);

// One table. Immutable. Thread-safe.
class Table {
 public:
  // Sheets of a workbook with other headers share one list of columns; one called "sheet" tells the
  // later ones apart. kCorrupt, kIo, kUnsupported: it is no table.
  static Result<std::shared_ptr<const Table>> Read(const std::string& path);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] size_t rows() const { return levels_.size(); }
  // Empty where the row is shorter. Requires: row < rows().
  [[nodiscard]] std::string_view Cell(size_t row, size_t column) const {
    const size_t at = first_cell_[row] + column;
    return at < first_cell_[row + 1] ? texts_[cells_[at]] : std::string_view();
  }
  // The numbers of its cells in texts(). Requires: row < rows().
  [[nodiscard]] std::span<const uint32_t> Cells(size_t row) const {
    return std::span(cells_).subspan(first_cell_[row], first_cell_[row + 1] - first_cell_[row]);
  }
  [[nodiscard]] const TextPool& texts() const { return texts_; }
  // What the row's own result says: the worst of its words, where there are several results.
  [[nodiscard]] NodeLevel Level(size_t row) const { return levels_[row]; }
  // The value or call that a row is about; empty: the table has none.
  [[nodiscard]] std::string_view NameOf(size_t row) const;
  // The call of a row: "Torch.mul.3.forward" of its values; empty: the table has none.
  [[nodiscard]] std::string_view CallOf(size_t row) const;

 private:
  friend class TableReader;

  std::vector<std::string> columns_;
  TextPool texts_;
  std::vector<uint32_t> cells_;        // numbers of texts, of all rows one after the other
  std::vector<size_t> first_cell_{0};  // by row, and the end
  std::vector<NodeLevel> levels_;
  size_t name_column_ = SIZE_MAX;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_TABLES_TABLE_FILE_H_
