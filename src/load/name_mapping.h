// mapping.csv: files of dumps whose names would have been too long, with numbers or digests
// instead.

#ifndef PLUMBLINE_LOAD_NAME_MAPPING_H_
#define PLUMBLINE_LOAD_NAME_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

// The table of one directory. It keeps the text of the table and where its rows are, so that one of
// hundreds of megabytes takes little more than those. Thread-safe for reading.
class NameMapping {
 public:
  // Empty without the table. A name is everything behind the first comma, as most writers do not
  // quote; cells that are quoted from end to end are read as csv has them, line breaks included.
  // Of two rows for one file the later one counts, as the file is the later one's.
  static Result<NameMapping> Read(const std::string& directory);

  // The name that a file stands for: what the table says, or `file`. The ".npy" of arrays may be
  // missing on either side of a row.
  [[nodiscard]] std::string NameOf(std::string_view file) const;
  // What a row says of exactly that file.
  [[nodiscard]] std::optional<std::string> Find(std::string_view file) const;

  // Of files with a row, whether they are there or not.
  [[nodiscard]] size_t size() const { return rows_.size(); }
  [[nodiscard]] std::string_view file(size_t row) const {
    return Text(rows_[row].file_at, rows_[row].file_bytes);
  }
  // A copy: full name by file.
  [[nodiscard]] std::map<std::string, std::string> rows() const;
  // A sentence for each line that is no row.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Places in the text; from its end on, in the cells that had quotes.
  struct Row {
    uint64_t file_at = 0, name_at = 0;
    uint32_t file_bytes = 0, name_bytes = 0;
  };

  void AddRows(const std::string& path);
  void SortRows();
  [[nodiscard]] std::string_view Text(uint64_t at, uint32_t bytes) const;
  [[nodiscard]] std::string NameIn(const Row& row) const;

  std::string text_, unquoted_;
  std::vector<Row> rows_;  // by file
  std::vector<std::string> notes_;
};

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_NAME_MAPPING_H_
