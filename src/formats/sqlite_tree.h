// Whole tables of an SQLite database, written as pages: rows that come in the order of their keys
// need no search, no cache and no statement. https://www.sqlite.org/fileformat.html has the format.

#ifndef PLUMBLINE_FORMATS_SQLITE_TREE_H_
#define PLUMBLINE_FORMATS_SQLITE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "plumbline/result.h"

namespace plumbline::sqlite {

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

#endif  // PLUMBLINE_FORMATS_SQLITE_TREE_H_
