// The text of a file in memory that is given back while it is being read.

#ifndef PLUMBLINE_BASE_FILE_TEXT_H_
#define PLUMBLINE_BASE_FILE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline {

// A copy of a whole file, so that it may change or shrink meanwhile. A reader that goes through it
// once calls Release(), and what it builds takes the place of the text. Move-only;
// single-threaded.
class FileText {
 public:
  // kNotFound, kIo, kInvalidArgument for a directory.
  static Result<FileText> Load(const std::string& path);
  FileText(FileText&& other) noexcept;
  FileText& operator=(FileText&&) = delete;
  ~FileText();

  [[nodiscard]] std::string_view view() const { return {data_, size_}; }
  // The first `bytes` bytes are not read again: their memory is returned in steps of megabytes, and
  // they may read as zeros from now on.
  void Release(size_t bytes);

 private:
  FileText() = default;
  Status Grow(size_t capacity, const std::string& path);

  char* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
  size_t released_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_TEXT_H_
