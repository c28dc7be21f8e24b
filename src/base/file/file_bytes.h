// Bytes of files and of memory: read once and let go, or shared with a program beside this one.

#ifndef PLUMBLINE_BASE_FILE_FILE_BYTES_H_
#define PLUMBLINE_BASE_FILE_FILE_BYTES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline {

// Bytes that two processes see; nothing of it is left when both have ended. Move-only.
// Thread-compatible.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(SharedBytes&& other) noexcept;
  SharedBytes& operator=(SharedBytes&& other) noexcept;
  ~SharedBytes();

  static Result<SharedBytes> Create();
  // Memory that either process may make larger and nobody smaller, so that what is mapped stays
  // there whatever the other process does. Reset() is not for it.
  static Result<SharedBytes> CreateGrowing();
  // Makes growing memory at least `size` bytes, for which there is room then; what is there stays.
  Status Grow(size_t size);
  // All of growing memory, as large as whoever grew it made it. Valid as long as the object, until
  // the next Map().
  Result<std::span<std::byte>> Map();
  // Gives the pages of growing memory back to the system: it reads as zeros.
  Status Clear();
  // Makes it `size` bytes of zeros.
  Status Reset(size_t size);
  Status WriteAt(std::span<const std::byte> bytes, size_t offset);
  // All of it, as the other process left it.
  [[nodiscard]] Result<std::vector<std::byte>> Read() const;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  // Of growing memory.
  std::span<std::byte> mapped_;
  size_t backed_ = 0;  // bytes from the start that there is room for
};

// The bytes of files that are read once and let go: thousands of small ones, or a large one.

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

// Reads a file into `buffer` at once, with three system calls and no allocation: for many small
// files of one directory. Returns its bytes, a part of `buffer`, or an empty span when the file is
// empty or does not fit: read it in another way. Some network file systems may give fewer bytes
// than there are: what is cut is to be read in another way, too. kNotFound, kIo.
Result<std::span<const std::byte>> ReadSmallFile(const Directory& directory, std::string_view name,
                                                 std::span<std::byte> buffer);

// Whether two files hold the same bytes; they are read piece by piece. False also where one cannot
// be read.
bool HaveSameBytes(const std::string& a, const std::string& b);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_FILE_BYTES_H_
