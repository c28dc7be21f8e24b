// The bytes of a file that is read once and let go: thousands of small ones, or a large one.

#ifndef PLUMBLINE_BASE_FILE_BYTES_H_
#define PLUMBLINE_BASE_FILE_BYTES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "plumbline/result.h"

namespace plumbline {

// A whole file for reading. A small one is read, which costs less than to map its pages and give
// them back; a larger one is mapped. The thread that destroys it keeps the memory of a few small
// ones for the next files. Move-only. Thread-safe for reading.
class FileBytes {
 public:
  FileBytes() = default;
  // Errors as of MappedFile::Open().
  static Result<FileBytes> Open(const std::string& path);

  // Valid as long as the object, also where it was moved to.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  struct Keep {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte[], Keep>;
  struct KeptOfThread;
  static KeptOfThread& Kept();
  static Memory TakeMemory();

  Memory read_;  // kMostRead bytes
  std::shared_ptr<const MappedFile> mapped_;
  std::span<const std::byte> bytes_;
};

// Whether two files hold the same bytes; they are read piece by piece. False also where one cannot
// be read.
bool HaveSameBytes(const std::string& a, const std::string& b);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_BYTES_H_
