// Names of a directory's entries block by block, as the file system gives them: where there are so
// many that sorting them, or waiting for the last one, takes time.

#ifndef PLUMBLINE_BASE_DIRECTORY_NAMES_H_
#define PLUMBLINE_BASE_DIRECTORY_NAMES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/directory.h"
#include "plumbline/result.h"

namespace plumbline {

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

#endif  // PLUMBLINE_BASE_DIRECTORY_NAMES_H_
