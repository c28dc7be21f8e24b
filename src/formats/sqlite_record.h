// Rows of an SQLite table in the form in which its pages hold them.

#ifndef PLUMBLINE_FORMATS_SQLITE_RECORD_H_
#define PLUMBLINE_FORMATS_SQLITE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace plumbline::sqlite {

// Texts are borrowed. SQLite has no NaN: it becomes null.
using Cell = std::variant<std::monostate, int64_t, double, std::string_view>;

// Appends a variable-length integer of the file format: seven bits per byte, the highest first;
// nine bytes at most, the last of which holds eight bits.
void AppendVarint(uint64_t value, std::string& out);

// Records of rows, one behind the other (https://www.sqlite.org/fileformat.html, 2.1). Not for
// tables of more than 8000 columns. Single-threaded; several may pack the rows of one table at
// once.
class PackedRows {
 public:
  // The first cell is left out: it is the table's INTEGER PRIMARY KEY, which the page holds. The
  // others have the types that their columns are declared with, or those are declared with none.
  // Text that is not UTF-8 is replaced as in BindText().
  void Add(std::span<const Cell> cells);
  void Clear();

  [[nodiscard]] size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  void AddCell(const Cell& cell);

  std::string bytes_;
  std::vector<size_t> ends_;
  std::string types_, values_;  // of the row being packed
};

}  // namespace plumbline::sqlite

#endif  // PLUMBLINE_FORMATS_SQLITE_RECORD_H_
