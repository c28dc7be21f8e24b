#include "base/path.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace plumbline {

PathKind KindOf(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return PathKind::kMissing;
  if (S_ISREG(info.st_mode)) return PathKind::kFile;
  if (S_ISDIR(info.st_mode)) return PathKind::kDirectory;
  return PathKind::kOther;
}

Result<PathFacts> Inspect(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  PathFacts facts;
  facts.kind = S_ISREG(info.st_mode)   ? PathKind::kFile
               : S_ISDIR(info.st_mode) ? PathKind::kDirectory
                                       : PathKind::kOther;
  facts.is_link = S_ISLNK(info.st_mode);
  facts.is_shared_writable = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  facts.is_own = ::geteuid() == 0 || info.st_uid == ::geteuid();
  facts.size_bytes = static_cast<uint64_t>(info.st_size);
  return facts;
}

Result<std::string> RealPath(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return ErrnoError(errno, path, "resolve");
  std::string result(resolved);
  std::free(resolved);
  return result;
}

Result<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoError(error.value(), path, "make absolute");
  std::string text = absolute.lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Result<uint64_t> FileSize(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  return static_cast<uint64_t>(info.st_size);
}

Result<int64_t> ModifiedAt(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

Result<FileIdentity> IdentityOf(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError(errno, path, "inspect");
  return FileIdentity{static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino)};
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return ErrnoError(errno, path, "list");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  if (directory.back() == '/') return fmt::format("{}{}", directory, name);
  return fmt::format("{}/{}", directory, name);
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace plumbline
