// The files that a command reads, which it must not replace.

#ifndef PLUMBLINE_BASE_FILE_INPUT_FILES_H_
#define PLUMBLINE_BASE_FILE_INPUT_FILES_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline {

// Files, and all that is below directories. Paths that are empty or missing are left out. The
// directories are read when the first output is there already. Thread-compatible.
class InputFiles {
 public:
  explicit InputFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // kInvalidArgument: there is a file at `output`, and it is one of these, by this or another name
  // (hard links, symbolic links). To be asked before anything is written.
  Status CheckSpares(const std::string& output);

 private:
  void Add(const std::string& path);

  std::vector<std::string> paths_;
  std::optional<std::set<FileIdentity>> known_;  // files and directories
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_INPUT_FILES_H_
