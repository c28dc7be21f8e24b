// Tables of an SQLite database in the form in which its pages hold them: rows, and whole tables
// written without the library.

#ifndef PLUMBLINE_FORMATS_SQLITE_SQLITE_TREE_H_
#define PLUMBLINE_FORMATS_SQLITE_SQLITE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline::sqlite {

// Rows of an SQLite table in the form in which its pages hold them.

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

// Whole tables of an SQLite database, written as pages: rows that come in the order of their keys
// need no search, no cache and no statement. https://www.sqlite.org/fileformat.html has the format.

inline constexpr size_t kPageBytes = 16384;

// The pages behind those that SQLite itself has written. Numbers count from 1. Errors are those of
// the file. Single-threaded.
class PageFile {
 public:
  // `file` is where nothing is written yet, and holds `pages` pages; it must outlive this.
  static Result<PageFile> Open(AtomicFile& file, uint32_t pages);

  // The number of the next page, and of the one after it.
  [[nodiscard]] uint32_t next() const { return After(last_); }
  [[nodiscard]] uint32_t after_next() const { return After(next()); }
  // Appends a page of kPageBytes.
  Status Append(std::string_view page);
  // Writes over an earlier one.
  Status Replace(uint32_t number, std::string_view page);
  // Writes what is left, and the number of pages into the head of the database.
  Status Finish();

 private:
  PageFile(AtomicFile& file, uint32_t pages) : file_(&file), last_(pages) {}
  static uint32_t After(uint32_t page);

  AtomicFile* file_;
  uint32_t last_;
  std::string pending_;
};

// The tree of one table with rows that SQLite numbers (no WITHOUT ROWID), empty before.
class TableTree {
 public:
  // `root`: sqlite_master.rootpage. `file` must outlive this.
  TableTree(PageFile& file, uint32_t root);

  // Keys must grow. `record`: PackedRows.
  Status Add(int64_t key, std::string_view record);
  Status Finish();

 private:
  struct Child {
    uint32_t page;
    int64_t last_key;
  };
  // Whether the leaf can take a cell of so many bytes, and its place.
  [[nodiscard]] bool HasRoom(size_t cell) const;
  Status FlushLeaf();
  void ClearPage(char type);
  void PutCell(std::string_view cell);
  // The record's part that does not fit on the leaf.
  Status AddOverflow(std::string_view rest);
  Status AddLevel();
  void FillInterior(const Child* begin, const Child* end);

  PageFile& file_;
  uint32_t root_;
  std::string page_;  // the leaf, or later one interior page, that is being filled
  size_t head_bytes_ = 0, cells_ = 0, begin_of_cells_ = kPageBytes;
  int64_t last_key_ = 0;
  std::string cell_;
  std::vector<Child> children_;  // of the level to come
};

}  // namespace plumbline::sqlite

#endif  // PLUMBLINE_FORMATS_SQLITE_SQLITE_TREE_H_
