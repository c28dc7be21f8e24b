// What stands at a path, and the text of paths.

#ifndef PLUMBLINE_BASE_PATH_H_
#define PLUMBLINE_BASE_PATH_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

enum class PathKind : uint8_t { kMissing, kFile, kDirectory, kOther };
PathKind KindOf(const std::string& path);  // follows symbolic links
// What stands at a path itself; a symbolic link is not followed (kind kOther).
struct PathFacts {
  PathKind kind = PathKind::kMissing;
  bool is_link = false;
  bool is_shared_writable = false;  // by group or others
  bool is_own = false;              // belongs to the calling user, or the caller is root
  uint64_t size_bytes = 0;
};
Result<PathFacts> Inspect(const std::string& path);
// Absolute path without links, "." and ".."; kNotFound when a part does not exist.
Result<std::string> RealPath(const std::string& path);
// Absolute form by text alone: the working directory in front, "." and ".." resolved.
Result<std::string> AbsolutePath(const std::string& path);
Result<uint64_t> FileSize(const std::string& path);
// Time of the last change of the contents, in nanoseconds since 1970.
Result<int64_t> ModifiedAt(const std::string& path);
// What two names share exactly if they are hard links of one file.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};
Result<FileIdentity> IdentityOf(const std::string& path);  // follows symbolic links
// Names (not paths) of the entries except "." and "..", sorted bytewise.
Result<std::vector<std::string>> ListDirectory(const std::string& path);

std::string JoinPath(std::string_view directory, std::string_view name);
std::string_view BaseName(std::string_view path);
std::string_view DirectoryOf(std::string_view path);  // "." when there is no slash

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PATH_H_
