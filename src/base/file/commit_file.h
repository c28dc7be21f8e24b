// A file that is rewritten in place and yet never seen half changed: for formats that scatter small
// changes over a file (HDF5's groups), in a process that may be killed at any moment.

#ifndef PLUMBLINE_BASE_FILE_COMMIT_FILE_H_
#define PLUMBLINE_BASE_FILE_COMMIT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline {

// Bytes behind those of the last commit are written at once. Changes of committed bytes wait in
// memory until Commit(), which first writes them to a hidden file `.{name}.commit` beside the file
// and then to their places. A process killed before that file is complete leaves the earlier
// contents (and bytes behind them that nobody refers to); one killed later leaves it, and whoever
// opens the file next carries the changes out. It outlasts the process, not the machine: nothing is
// synced. A process that a writer forks can write nothing. Move-only. Thread-compatible.
class CommitFile {
 public:
  // A new file. What stands at `path` stays until the first commit replaces it, so that the file is
  // never there without contents. kIo; kInvalidArgument when another writer has it open.
  static Result<CommitFile> Create(const std::string& path);
  // An existing file to change. kNotFound too.
  static Result<CommitFile> OpenUpdate(const std::string& path);
  // An existing file to read, with the changes of an interrupted commit; the file stays as it is.
  // While another process writes, what is read may be torn.
  static Result<CommitFile> OpenRead(const std::string& path);

  CommitFile(CommitFile&&) = default;
  CommitFile& operator=(CommitFile&&) = delete;
  ~CommitFile();

  // Bytes behind the end read as zeros.
  Status Read(uint64_t offset, std::span<std::byte> out) const;
  // Not of a file opened with OpenRead().
  Status Write(uint64_t offset, std::span<const std::byte> bytes);
  Status Extend(uint64_t size);  // to at least `size` bytes
  Status Commit();

  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // The hidden file beside `path`.
  static std::string ChangesPath(const std::string& path);

 private:
  explicit CommitFile(std::string path);
  Status LockForWriting();
  Status ChangePage(uint64_t page, uint64_t begin, std::span<const std::byte> bytes);
  Status LoadChanges();
  [[nodiscard]] Result<std::string> EncodeChanges() const;
  Status CarryOut();

  std::string path_;
  int process_ = 0;  // that opened it
  File file_;
  File changes_;                           // locked; not open when reading
  std::string temporary_;                  // name of the file until the first commit
  uint64_t size_ = 0;                      // with what is not committed
  uint64_t committed_ = 0;                 // bytes that the last commit covers
  bool in_doubt_ = false;                  // there are changes that are not carried out
  std::map<uint64_t, std::string> pages_;  // changed, by number; the last one may be short
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_COMMIT_FILE_H_
