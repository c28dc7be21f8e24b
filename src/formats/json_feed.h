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

  // Runs `read`, which reads on from in(). If it fails or comes to the end of the loaded part, all
  // is loaded and `read` runs again from where it began: what it leaves elsewhere must not add up.
  // Errors: those of `read` and of FileText.
  template <class F>
  Status Read(const F& read) {
    PL_TRY(LoadAhead());
    if (is_whole()) return read();
    const json::Reader before = in_;
    Status status = read();
    // A number may go on where the loaded part ends.
    if (status && in_.offset() < text_.size()) return status;
    in_ = before;
    PL_TRY(LoadAll());
    return read();
  }
  // What was read is not needed any more.
  void Release(size_t bytes) {
    if (file_ != nullptr) file_->Release(bytes);
  }
  Status LoadAll();

 private:
  [[nodiscard]] bool is_whole() const { return file_ == nullptr || file_->is_whole(); }
  // Loads more if little is left.
  Status LoadAhead() {
    constexpr size_t kLeast = size_t{1} << 20;
    if (is_whole() || text_.size() - in_.offset() >= kLeast) return {};
    return LoadMore();
  }
  Status LoadMore();

  FileText* file_ = nullptr;
  std::string_view text_;
  json::Reader in_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_JSON_FEED_H_
