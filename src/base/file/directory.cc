#include "base/file/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/file/object_store.h"

namespace plumbline {

using object_store::LocalPath;

Result<std::vector<DirectoryEntry>> ListEntries(const std::string& path) {
  DIR* directory = ::opendir(LocalPath(path).c_str());
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

namespace {

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// Whether `name` in `directory` is what is open as `fd`.
bool IsNamed(int directory, std::string_view name, int fd) {
  struct stat opened {};
  struct stat named {};
  if (::fstat(fd, &opened) != 0) return false;
  if (::fstatat(directory, std::string(name).c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

Error NoDirectory(const std::string& path) {
  return Error(ErrorCode::kIo,
               fmt::format("{}: is a symbolic link or a file (expected a directory). Remove it or "
                           "choose another dump_path",
                           path));
}

// Behind a trailing slash or "/." the kernel follows a link whatever the flags say.
std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && (path.ends_with('/') || path.ends_with("/."))) path.pop_back();
  return path;
}

// Not all file systems count the links of a removed directory as 0.
bool IsRemoved(int fd, const struct stat& info) {
  if (info.st_nlink == 0) return true;
  char target[PATH_MAX];
  const ssize_t size =
      ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target, sizeof(target));
  return size > 0 && std::string_view(target, static_cast<size_t>(size)).ends_with(" (deleted)");
}

}  // namespace

Result<Directory> Directory::Open(const std::string& path) {
  const int fd = Syscalls().openat(AT_FDCWD, LocalPath(path).c_str(), kOpenFlags, 0);
  if (fd < 0) return ErrnoError(errno, path, "open");
  Result<std::string> place = AbsolutePath(LocalPath(path).text());
  return Directory(fd, path, place ? *std::move(place) : path);
}

Result<Directory> Directory::OpenUnlinked(const std::string& path) {
  const std::string bare = WithoutTrailingSlashes(path);
  const int fd = Syscalls().openat(AT_FDCWD, LocalPath(bare).c_str(), kOpenFlags | O_NOFOLLOW, 0);
  if (fd < 0) {
    if (errno == ENOTDIR || errno == ELOOP) return NoDirectory(path);
    return ErrnoError(errno, path, "open");
  }
  Result<std::string> place = AbsolutePath(LocalPath(path).text());
  return Directory(fd, path, place ? *std::move(place) : path);
}

Result<Directory> Directory::MakeInside(std::string_view name) const {
  const std::string component(name);
  std::string path = JoinPath(path_, name);
  if (Syscalls().mkdirat(fd_, component.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    const int error = errno;
    if (KindOf(name) != PathKind::kDirectory) return ErrnoError(error, path, "create directory");
  }
  const int fd = Syscalls().openat(fd_, component.c_str(), kOpenFlags | O_NOFOLLOW, 0);
  if (fd >= 0) return Directory(fd, std::move(path), JoinPath(place_, name));
  if (errno != ENOTDIR && errno != ELOOP) return ErrnoError(errno, path, "open");
  return NoDirectory(path);
}

Directory::Directory(Directory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      place_(std::move(other.place_)) {}

Directory& Directory::operator=(Directory&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) Syscalls().close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
    place_ = std::move(other.place_);
  }
  return *this;
}

Directory::~Directory() {
  if (fd_ >= 0) Syscalls().close(fd_);
}

Status Directory::CheckPlace() const {
  struct stat here {};
  struct stat there {};
  if (::fstat(fd_, &here) != 0) return ErrnoError(errno, path_, "inspect");
  const bool found = ::stat(place_.c_str(), &there) == 0;
  if (found && there.st_dev == here.st_dev && there.st_ino == here.st_ino) return {};
  if (IsRemoved(fd_, here)) {
    return Error(ErrorCode::kNotFound, path_ + ": was removed while it was recorded into");
  }
  return Error(ErrorCode::kIo,
               fmt::format("{}: was {} while it was recorded into", path_,
                           found ? "replaced by another directory or link" : "moved away"));
}

PathKind Directory::KindOf(std::string_view name) const {
  struct stat info {};
  if (::fstatat(fd_, std::string(name).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return PathKind::kMissing;
  }
  if (S_ISREG(info.st_mode)) return PathKind::kFile;
  return S_ISDIR(info.st_mode) ? PathKind::kDirectory : PathKind::kOther;
}

bool Directory::Holds(std::string_view name, const Directory& directory) const {
  return IsNamed(fd_, name, directory.fd_);
}

bool Directory::Holds(std::string_view name, const File& file) const {
  return IsNamed(fd_, name, file.fd());
}

// Through the path when it leads here, because a directory stream needs a descriptor of its own.
Result<std::vector<std::string>> Directory::List() const {
  PL_TRY(CheckPlace());
  return ListDirectory(place_);
}

uint64_t Directory::BytesFreedBy(std::string_view name) const {
  struct stat info {};
  if (::fstatat(fd_, std::string(name).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return S_ISREG(info.st_mode) && info.st_nlink == 1 ? static_cast<uint64_t>(info.st_size) : 0;
}

Status Directory::Remove(std::string_view name) const {
  if (Syscalls().unlinkat(fd_, std::string(name).c_str(), 0) == 0 || errno == ENOENT) return {};
  return ErrnoError(errno, JoinPath(path_, name), "remove");
}

Status Directory::Rename(std::string_view from, std::string_view to) const {
  const std::string source(from);
  const std::string target(to);
  if (Syscalls().renameat(fd_, source.c_str(), fd_, target.c_str()) == 0) return {};
  return ErrnoError(errno, JoinPath(path_, from), fmt::format("rename to {}", to));
}

Status Directory::Link(std::string_view from, std::string_view to) const {
  const std::string source(from);
  const std::string target(to);
  if (Syscalls().linkat(fd_, source.c_str(), fd_, target.c_str(), 0) == 0) return {};
  return LinkError(errno, from, JoinPath(path_, to));
}

Status Directory::MakeReadOnly(std::string_view name) const {
  if (::fchmodat(fd_, std::string(name).c_str(), S_IRUSR, 0) == 0) return {};
  return ErrnoError(errno, JoinPath(path_, name), "set the mode of");
}

Status Directory::Sync() const {
  // Some network file systems cannot sync a directory; the rename itself is still ordered.
  if (Syscalls().fsync(fd_) == 0 || errno == EINVAL) return {};
  return ErrnoError(errno, path_, "sync");
}

Status Directory::SyncFileSystem() const {
  if (Syscalls().syncfs(fd_) == 0) return {};
  return ErrnoError(errno, path_, "sync the file system of");
}

Result<Directory::Space> Directory::SpaceLeft() const {
  struct statvfs info {};
  if (Syscalls().fstatvfs(fd_, &info) != 0)
    return ErrnoError(errno, path_, "ask the space left of");
  return Space{uint64_t{info.f_bavail} * info.f_frsize, uint64_t{info.f_blocks} * info.f_frsize};
}

Result<std::vector<std::string>> ListDirectories(const std::string& path) {
  PL_TRY_ASSIGN(std::vector<DirectoryEntry> entries, ListEntries(path));
  std::vector<std::string> names;
  for (DirectoryEntry& entry : entries) {
    if (entry.kind == PathKind::kDirectory) names.push_back(std::move(entry.name));
  }
  return names;
}

namespace {

// Of some hundred names: what two threads share has this grain.
constexpr size_t kBlockBytes = size_t{32} << 10;
constexpr size_t kUsualEntry = 64;

// Entries as the kernel writes them; libraries copy them once more, and older ones lack the call.
Result<size_t> ReadEntries(const Directory& directory, std::byte* memory) {
  for (;;) {
    const auto count = ::syscall(SYS_getdents64, directory.fd(), memory, kBlockBytes);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) return ErrnoError(errno, directory.path(), "list");
  }
}

// A field of an entry, as dirent64 has it.
template <class T>
T Field(const std::byte* entry, size_t offset) {
  T value;
  std::memcpy(&value, entry + offset, sizeof(value));
  return value;
}

}  // namespace

Result<DirectoryNames> DirectoryNames::Open(const std::string& path) {
  PL_TRY_ASSIGN(Directory directory, Directory::Open(path));
  return DirectoryNames(std::move(directory));
}

Result<NameBlock> DirectoryNames::Next() {
  NameBlock block;
  block.memory_ = std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
  block.names_.reserve(kBlockBytes / kUsualEntry);
  while (block.names_.empty()) {  // "." and ".." may come alone
    PL_TRY_ASSIGN(const size_t size, ReadEntries(directory_, block.memory_.get()));
    if (size == 0) break;
    for (size_t at = 0; at < size;) {
      const std::byte* const entry = block.memory_.get() + at;
      ListedName listed;
      listed.name = reinterpret_cast<const char*>(entry + offsetof(dirent64, d_name));
      listed.is_regular = Field<uint8_t>(entry, offsetof(dirent64, d_type)) == DT_REG;
      if (listed.name != "." && listed.name != "..") block.names_.push_back(listed);
      at += Field<uint16_t>(entry, offsetof(dirent64, d_reclen));
    }
  }
  return block;
}

}  // namespace plumbline
