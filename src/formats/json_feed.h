// A JSON text that is loaded while it is read, so that memory does not grow with the file.

#ifndef PLUMBLINE_FORMATS_JSON_FEED_H_
#define PLUMBLINE_FORMATS_JSON_FEED_H_

#include <cstddef>
#include <string_view>

#include "base/file_text.h"
#include "base/json.h"
#include "plumbline/result.h"

namespace plumbline {

// A reader and the part of its text that is loaded. Read every value, or key and value, through
// Read(). Not copyable; single-threaded.
class JsonFeed {
 public:
  // A text in memory, or one that comes from `file`; both must outlive the feed.
  JsonFeed(std::string_view text, int max_depth) : text_(text), in_(text, max_depth) {}
  JsonFeed(FileText& file, int max_depth)
      : file_(&file), text_(file.view()), in_(text_, max_depth) {}
  JsonFeed(const JsonFeed&) = delete;
  JsonFeed& operator=(const JsonFeed&) = delete;

  json::Reader& in() { return in_; }
  [[nodiscard]] const json::Reader& in() const { return in_; }
  // What is loaded; moves when more is. Positions in it stay.
  [[nodiscard]] std::string_view text() const { return text_; }

  // Runs `read`, which reads on from in(). If it comes to the end of the loaded part, more is
  // loaded and `read` runs again from where it began: what it leaves elsewhere must not add up.
  // Memory is that of the largest value read so. Errors: those of `read` and of FileText.
  template <class F>
  Status Read(const F& read) {
    PL_TRY(LoadAhead());
    for (;;) {
      if (is_whole()) return read();
      const json::Reader before = in_;
      Status status = read();
      if (!MayGoOn(status.has_value())) return status;
      in_ = before;
      PL_TRY(LoadMore());
    }
  }
  // What follows the document: nothing but blanks, of which any number is stepped over.
  Status ReadEnd();
  // What was read is not needed any more.
  void Release(size_t bytes) {
    if (file_ != nullptr) file_->Release(bytes);
  }

 private:
  [[nodiscard]] bool is_whole() const { return file_ == nullptr || file_->is_whole(); }
  // Loads more if little is left.
  Status LoadAhead() {
    constexpr size_t kLeast = size_t{1} << 20;
    if (is_whole() || text_.size() - in_.offset() >= kLeast) return {};
    return LoadMore();
  }
  // Whether what was read may be another value, or no failure, with the text behind the loaded
  // part: a number may go on there, and a character be cut.
  [[nodiscard]] bool MayGoOn(bool is_read) const {
    constexpr size_t kLongestToken = 64;
    const size_t left = text_.size() - in_.offset();
    if (is_read) return left == 0;
    return left < kLongestToken || in_.failure() == json::Reader::Failure::kTruncated;
  }
  // As much again as lies ahead, which reads a large value in time that grows with its size.
  Status LoadMore();

  FileText* file_ = nullptr;
  std::string_view text_;
  json::Reader in_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_JSON_FEED_H_
