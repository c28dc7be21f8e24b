// mapping.csv: files of dumps whose names would have been too long, with numbers or digests
// instead.

#ifndef PLUMBLINE_LOAD_NAME_MAPPING_H_
#define PLUMBLINE_LOAD_NAME_MAPPING_H_

#include <map>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

// The table of one directory. Thread-compatible.
class NameMapping {
 public:
  // Empty without the table. A name is everything behind the first comma, as most writers do not
  // quote; cells that are quoted from end to end are read as csv has them, line breaks included.
  // Of two rows for one file the later one counts, as the file is the later one's.
  static Result<NameMapping> Read(const std::string& directory);

  // The name that a file stands for: what the table says, or `file`, from which it is borrowed
  // then. The ".npy" of arrays may be missing on either side of a row.
  [[nodiscard]] const std::string& NameOf(const std::string& file) const;

  // Full name by file; also rows of files that are not there.
  [[nodiscard]] const std::map<std::string, std::string>& rows() const { return rows_; }
  // A sentence for each line that is no row.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void Add(std::string file, std::string name);

  std::map<std::string, std::string> rows_;
  std::map<std::string, std::string> arrays_;  // of rows without ".npy": the arrays they stand for
  std::vector<std::string> notes_;
};

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_NAME_MAPPING_H_
