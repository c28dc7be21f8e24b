// A directory for files that nobody needs longer than the program runs.

#ifndef PLUMBLINE_BASE_FILE_SCRATCH_DIRECTORY_H_
#define PLUMBLINE_BASE_FILE_SCRATCH_DIRECTORY_H_

#include <memory>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline {

// New and empty, for this user alone; removed with all that is in it.
class ScratchDirectory {
 public:
  // Called "{name}-" and six more characters, below $TMPDIR or /tmp. kIo.
  static Result<std::unique_ptr<ScratchDirectory>> Make(std::string_view name);
  // The same below `parent`, which is made: for what may be too large for there.
  static Result<std::unique_ptr<ScratchDirectory>> MakeIn(const std::string& parent,
                                                          std::string_view name);
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_SCRATCH_DIRECTORY_H_
