// Paths and files: what stands at a path, the text of paths, and the calls of the file system. Only
// this module opens, writes, renames, links or maps files.

#ifndef PLUMBLINE_BASE_FILE_FILE_H_
#define PLUMBLINE_BASE_FILE_FILE_H_

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result.h"

struct statvfs;

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

class Directory;  // base/file/directory.h

// The system calls used below; tests replace single members to make them fail (errno semantics).
struct SyscallTable {
  int (*openat)(int directory, const char* path, int flags, mode_t mode);
  ssize_t (*read)(int fd, void* buffer, size_t size);
  ssize_t (*write)(int fd, const void* buffer, size_t size);
  ssize_t (*pwrite)(int fd, const void* buffer, size_t size, off_t offset);
  int (*fsync)(int fd);
  int (*close)(int fd);
  int (*renameat)(int from_directory, const char* from, int to_directory, const char* to);
  int (*linkat)(int from_directory, const char* from, int to_directory, const char* to, int flags);
  int (*unlinkat)(int directory, const char* path, int flags);
  int (*mkdirat)(int directory, const char* path, mode_t mode);
  int (*syncfs)(int fd);
  int (*fstatvfs)(int fd, struct statvfs* info);
};
// The table in use. Not synchronised: replace it only while no other thread uses this module.
SyscallTable& Syscalls();

// Error with code kNotFound (ENOENT, ENOTDIR) or kIo: "path: cannot <action>: <strerror>".
Error ErrnoError(int errno_value, std::string_view path, std::string_view action);
// Of a failed link(): kUnsupported where the file system has no hard links.
Error LinkError(int errno_value, std::string_view from, std::string_view to);

// Open file, closed on destruction (an error of that close is lost: call Close() after writing).
// Move-only. Thread-compatible.
class File {
 public:
  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  static Result<File> OpenRead(const std::string& path);  // of regular files: never a pipe
  static Result<File> OpenRead(const Directory& directory, std::string_view name);
  // As the first, and its size; looks at what it is when it is open, which saves a system call. For
  // what a list has as a file: to open a device may set it going.
  static Result<File> OpenListed(const std::string& path, size_t& size);
  // Creates or truncates; mode 0640.
  static Result<File> Create(const std::string& path);
  // Creates if absent, appends; mode 0640.
  static Result<File> OpenAppend(const std::string& path);
  static Result<File> OpenAppend(const Directory& directory, std::string_view name);
  // For reading and writing at places: creates if absent, keeps the contents; mode 0640.
  static Result<File> OpenUpdate(const std::string& path);

  // Fills `out` from `offset` on; returns how many bytes the file had there.
  Result<size_t> ReadAt(std::span<std::byte> out, size_t offset) const;
  // Cuts or extends (with zeros) to `size` bytes.
  Status Resize(size_t size);
  // Writes everything; EINTR is retried, short writes are continued.
  Status Skip(size_t bytes);  // see AtomicFile::Skip
  Status Write(std::span<const std::byte> bytes);
  Status Write(std::string_view text);
  // The same at a place, without moving there.
  Status WriteAt(std::string_view text, size_t offset);
  Status Sync();
  Status Close();
  // Sets the time of the last change to now; needs no space.
  Status Touch();
  // Sets it to that time, as ModifiedAt() gives it.
  Status SetModifiedAt(int64_t time);
  // Advisory exclusive lock (flock), not waiting: false if another process holds it.
  Result<bool> TryLock();

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  friend class AtomicFile;
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

// A whole file mapped read-only, shared by the views into it. Empty files map to an empty span.
// Thread-safe for reading. A file truncated by another process while mapped raises SIGBUS, see
// base/file/lost_mapping.h; readers of files that may still be growing use ReadFile.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  MappedFile(std::span<const std::byte> bytes, std::string path)
      : bytes_(bytes), path_(std::move(path)) {}
  std::span<const std::byte> bytes_;
  std::string path_;
};

// The whole file in memory.
Result<std::string> ReadFile(const std::string& path);
// Its first bytes, at most `size`.
Result<std::string> ReadStart(const std::string& path, size_t size);

// A file that appears under its name only when complete: written under a temporary name in the same
// directory, then renamed by Commit(). Destroyed without Commit, the temporary is removed. A
// symbolic link in the place of the temporary is not followed.
class AtomicFile {
 public:
  // Written as `.{name}.{process}-{n}.tmp`, which no other writer uses: of several that write one
  // path the last stays. A killed process leaves its temporary.
  static Result<AtomicFile> Create(const std::string& path);
  // Written as `.{name}.tmp`, for directories with one writer; what a killed one left is
  // overwritten. `directory` must outlive the file.
  static Result<AtomicFile> Create(const Directory& directory, std::string_view name);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Moves on by `bytes`, which read as zeros; they take no disk space where the file system can.
  // Something must be written behind them.
  Status Skip(size_t bytes) { return file_.Skip(bytes); }
  Status Write(std::string_view text) { return file_.Write(text); }
  Status Write(std::span<const std::byte> bytes) { return file_.Write(bytes); }
  Status WriteAt(std::string_view text, size_t offset) { return file_.WriteAt(text, offset); }
  // Renames to the final name. With `durable`, fsyncs the file before and the directory after.
  Status Commit(bool durable);
  // Where it is written until then.
  [[nodiscard]] const std::string& temporary_path() const { return file_.path(); }

 private:
  AtomicFile(File file, std::string path, const Directory* directory)
      : file_(std::move(file)), path_(std::move(path)), directory_(directory) {}
  File file_;
  std::string path_;
  const Directory* directory_;  // null: paths are used as they are
  bool committed_ = false;
};

// An empty file that only one process can make, there as long as this lives: holds a name against
// others. A killed process leaves the file. Move-only.
class NameHold {
 public:
  // Nothing when the file is there already. kIo, kNotFound.
  static Result<std::optional<NameHold>> Make(const std::string& path);
  NameHold(NameHold&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  NameHold& operator=(NameHold&&) = delete;
  ~NameHold();

 private:
  explicit NameHold(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty when moved from
};

// Create, write and commit in one call.
Status WriteFileAtomically(const std::string& path, std::string_view text, bool durable);
Status WriteFileAtomically(const Directory& directory, std::string_view name, std::string_view text,
                           bool durable);

// Creates the directory and its missing parents, mode 0750. An existing directory is success.
Status MakeDirectories(const std::string& path);
Status SyncDirectory(const std::string& path);
// Everything written so far to the file system that holds `path`.
Status SyncFileSystem(const std::string& path);
Status RemoveFile(const std::string& path);  // absent is success
Status RenameFile(const std::string& from, const std::string& to);
// Hard link; kUnsupported where the file system has none (the caller copies instead).
Status LinkFile(const std::string& from, const std::string& to);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_FILE_H_
