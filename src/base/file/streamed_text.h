// The text of a file in memory that is loaded and given back while it is being read.

#ifndef PLUMBLINE_BASE_FILE_STREAMED_TEXT_H_
#define PLUMBLINE_BASE_FILE_STREAMED_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline {

// A copy of a whole file, so that it may change or shrink meanwhile. A reader that goes through it
// once calls Release(), and what it builds takes the place of the text. Move-only;
// single-threaded.
class StreamedText {
 public:
  // kNotFound, kIo, kInvalidArgument for a directory.
  static Result<StreamedText> Load(const std::string& path);
  // The same without a text yet. Memory is set aside as it is loaded: of a file of any size that is
  // damaged at its begin, no more is taken than was read.
  static Result<StreamedText> Open(const std::string& path);
  StreamedText(StreamedText&& other) noexcept;
  StreamedText& operator=(StreamedText&&) = delete;
  ~StreamedText();

  // What is loaded. Loading more may move it.
  [[nodiscard]] std::string_view view() const { return {data_, size_}; }
  // Loads at least `bytes` bytes, or all there are. kIo.
  Status LoadUntil(size_t bytes);
  // Whether the end of the file was reached.
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  // The first `bytes` bytes are not read again: their memory is reused or returned in steps of
  // megabytes, and they may read as zeros from now on.
  void Release(size_t bytes);

 private:
  StreamedText(File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  // Sets aside memory for the whole file, or for `most` bytes of it.
  static Result<StreamedText> OpenFor(const std::string& path, size_t most);
  Status Grow(size_t capacity);
  bool Reuse(char* step);

  File file_;
  std::string path_;
  bool is_whole_ = false;
  char* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
  size_t released_ = 0;
  size_t reused_until_ = 0;  // end of the steps that have the pages of released ones; 0: none
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_STREAMED_TEXT_H_
