// A text written row by row: collected in memory, handed to the file in large pieces.

#ifndef PLUMBLINE_BASE_FILE_TEXT_FILE_H_
#define PLUMBLINE_BASE_FILE_TEXT_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline {

// Appears under its name only when complete (AtomicFile). Append to text(), and call Flush()
// whenever a row is finished: it writes once a megabyte is collected, so that memory does not grow
// with the file. Errors are those of AtomicFile. Single-threaded; move-only.
class TextFile {
 public:
  static Result<TextFile> Create(const std::string& path);

  // What is not in the file yet; starts empty. The reference stays valid while the object does not
  // move.
  std::string& text() { return text_; }
  // Writes and clears the text if it is large enough.
  Status Flush() {
    if (text_.size() < kFlushBytes) return {};
    return WriteOut();
  }
  // Appends a piece, which is written at once if it is large.
  Status Write(std::string_view piece);
  // Writes the rest and gives the file its name. Not durable: results can be made again.
  Status Close();

 private:
  static constexpr size_t kFlushBytes = size_t{1} << 20;

  explicit TextFile(AtomicFile file) : file_(std::move(file)) {}
  Status WriteOut();

  AtomicFile file_;
  std::string text_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_FILE_TEXT_FILE_H_
