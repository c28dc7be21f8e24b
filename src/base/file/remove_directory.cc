#include "base/file/remove_directory.h"

#include <fcntl.h>

#include <cerrno>
#include <vector>

#include "base/file/file.h"

namespace plumbline {

Status RemoveDirectory(const std::string& path) {
  if (KindOf(path) == PathKind::kMissing) return {};
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) PL_TRY(RemoveFile(JoinPath(path, name)));
  if (Syscalls().unlinkat(AT_FDCWD, path.c_str(), AT_REMOVEDIR) == 0) return {};
  return ErrnoError(errno, path, "remove");
}

}  // namespace plumbline
