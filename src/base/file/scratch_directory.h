// A directory for files that are needed for a while.

#ifndef PLUMBLINE_BASE_FILE_SCRATCH_DIRECTORY_H_
#define PLUMBLINE_BASE_FILE_SCRATCH_DIRECTORY_H_

#include <string>
#include <utility>

#include "plumbline/result.h"

namespace plumbline {

// A new, empty, hidden directory of mode 0700 that goes with all that is in it when this ends; a
// killed process leaves it. Move-only.
class ScratchDirectory {
 public:
  // `.{name}-XXXXXX.tmp` in `parent`, which is made. kIo.
  static Result<ScratchDirectory> Make(const std::string& parent, const std::string& name);
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty when moved from
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_SCRATCH_DIRECTORY_H_
