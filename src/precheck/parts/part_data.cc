#include "precheck/parts/part_data.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/file/remove_directory.h"

namespace plumbline::precheck {

Result<std::string> PartDirectory(const std::string& stem, const std::string& output_directory,
                                  const ShardPlace& place) {
  constexpr size_t kDigits = 8;
  PL_TRY_ASSIGN(const std::string path, AbsolutePath(output_directory));
  return fmt::format("{}_{}_{}_of_{}", stem, DigestOfText(path).substr(0, kDigits), place.index,
                     place.count);
}

Status TakePartFiles(const std::string& part_directory, const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(part_directory));
  PL_TRY(MakeDirectories(directory));
  for (const std::string& name : names) {
    // What a killed writer has left of a file.
    const bool is_draft = name.starts_with('.') && name.ends_with(".tmp");
    if (is_draft) continue;
    PL_TRY(RenameFile(JoinPath(part_directory, name), JoinPath(directory, name)));
  }
  return RemoveDirectory(part_directory);
}

}  // namespace plumbline::precheck
