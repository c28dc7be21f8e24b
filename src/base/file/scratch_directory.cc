#include "base/file/scratch_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "base/file/file.h"

namespace plumbline {

Result<std::unique_ptr<ScratchDirectory>> ScratchDirectory::Make(std::string_view name) {
  std::error_code problem;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(problem);
  return MakeIn(problem ? "/tmp" : parent.string(), name);
}

Result<std::unique_ptr<ScratchDirectory>> ScratchDirectory::MakeIn(const std::string& parent,
                                                                   std::string_view name) {
  PL_TRY(MakeDirectories(parent));
  std::string path = JoinPath(parent, std::string(name) + "-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return Error(ErrorCode::kIo, ErrnoError(errno, path, "make a directory").message());
  }
  return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(std::move(path)));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace plumbline
