#include "base/file/scratch_directory.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/file/file.h"

namespace plumbline {

Result<ScratchDirectory> ScratchDirectory::Make(const std::string& parent,
                                                const std::string& name) {
  PL_TRY(MakeDirectories(parent));
  const std::string ending = ".tmp";
  std::string path = JoinPath(parent, "." + name + "-XXXXXX" + ending);
  // There is no version of mkdtemp() with an ending that every system has: the name is made of the
  // one that it found.
  std::string free_name = path.substr(0, path.size() - ending.size());
  if (::mkdtemp(free_name.data()) == nullptr) return ErrnoError(errno, parent, "make a directory");
  path = free_name + ending;
  if (Status renamed = RenameFile(free_name, path); !renamed) {
    std::error_code ignored;
    std::filesystem::remove(free_name, ignored);
    return renamed.error();
  }
  return ScratchDirectory(std::move(path));
}

ScratchDirectory::~ScratchDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace plumbline
