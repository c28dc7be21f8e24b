#include "base/list_entries.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace plumbline {

Result<std::vector<DirectoryEntry>> ListEntries(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return ErrnoError(errno, path, "list");
  std::vector<DirectoryEntry> entries;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const PathKind kind = entry->d_type == DT_REG   ? PathKind::kFile
                          : entry->d_type == DT_DIR ? PathKind::kDirectory
                                                    : KindOf(JoinPath(path, name));
    entries.push_back({std::string(name), kind});
  }
  ::closedir(directory);
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

}  // namespace plumbline
