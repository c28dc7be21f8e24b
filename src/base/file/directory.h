// What stands in a directory: its entries with what they are, the directory itself held open, and
// names block by block.

#ifndef PLUMBLINE_BASE_FILE_DIRECTORY_H_
#define PLUMBLINE_BASE_FILE_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline {

struct DirectoryEntry {
  std::string name;
  PathKind kind = PathKind::kMissing;  // links are followed
};

// All entries but "." and "..", sorted bytewise by name. On most file systems without a system call
// per entry. Errors of ListDirectory().
Result<std::vector<DirectoryEntry>> ListEntries(const std::string& path);

// An open directory, for writers that must not follow what its path comes to name later; and the
// directories in one.

// Directories that are made; others than the group do not read them.
inline constexpr mode_t kDirectoryMode = 0750;

// What is made through it lands in the directory that was opened, whatever its path names since:
// another directory, a symbolic link, nothing. Names are single components; symbolic links in their
// place are never followed. Move-only. Thread-compatible; const members may run in parallel.
class Directory {
 public:
  // An existing directory; symbolic links in `path` are followed.
  static Result<Directory> Open(const std::string& path);
  // The same, but kIo when the last component is a symbolic link; earlier ones may be.
  static Result<Directory> OpenUnlinked(const std::string& path);
  // The directory `name` in this one, made (mode 0750) if missing. kIo when something
  // else stands there, such as a symbolic link.
  Result<Directory> MakeInside(std::string_view name) const;
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;
  ~Directory();

  // Whether the path it was opened under still leads here. kNotFound: the directory was removed.
  // kIo: it exists, and the path names something else or nothing.
  [[nodiscard]] Status CheckPlace() const;
  // What stands under a name; a symbolic link is kOther.
  [[nodiscard]] PathKind KindOf(std::string_view name) const;
  // True if `name` is the directory that is open.
  [[nodiscard]] bool Holds(std::string_view name, const Directory& directory) const;
  // True if `name` is the file that is open.
  [[nodiscard]] bool Holds(std::string_view name, const File& file) const;
  [[nodiscard]] Result<std::vector<std::string>> List() const;  // as ListDirectory
  // Bytes that a file alone would free if it were replaced: 0 if absent or hard linked.
  [[nodiscard]] uint64_t BytesFreedBy(std::string_view name) const;

  Status Remove(std::string_view name) const;  // a file; absent is success
  Status Rename(std::string_view from, std::string_view to) const;
  Status Link(std::string_view from, std::string_view to) const;  // errors as LinkFile
  Status MakeReadOnly(std::string_view name) const;               // a file: mode 0400
  Status Sync() const;
  Status SyncFileSystem() const;  // everything written so far to the file system it is on

  struct Space {
    uint64_t free_bytes = 0;  // for this user
    uint64_t total_bytes = 0;
  };
  [[nodiscard]] Result<Space> SpaceLeft() const;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Directory(int fd, std::string path, std::string place)
      : fd_(fd), path_(std::move(path)), place_(std::move(place)) {}
  int fd_ = -1;
  std::string path_;   // as it was given
  std::string place_;  // absolute: the process may change its working directory
};

// Names of the directories in a directory, and of links to such, as ListDirectory.
Result<std::vector<std::string>> ListDirectories(const std::string& path);

// Names of a directory's entries block by block, as the file system gives them: where there are so
// many that sorting them, or waiting for the last one, takes time.

struct ListedName {
  std::string_view name;    // behind it stands a 0, which is no part of it
  bool is_regular = false;  // false: something else, or the file system does not say what
};

// Some names and the memory that they lie in. Move-only; views stay valid where it was moved to.
class NameBlock {
 public:
  NameBlock() = default;
  [[nodiscard]] std::span<const ListedName> names() const { return names_; }
  [[nodiscard]] bool empty() const { return names_.empty(); }

 private:
  friend class DirectoryNames;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<ListedName> names_;
};

// A directory being listed. Move-only. Thread-compatible.
class DirectoryNames {
 public:
  // Errors of ListDirectory().
  static Result<DirectoryNames> Open(const std::string& path);

  // The next names but "." and ".."; none: those were all. kIo.
  Result<NameBlock> Next();

 private:
  explicit DirectoryNames(Directory directory) : directory_(std::move(directory)) {}
  Directory directory_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_DIRECTORY_H_
