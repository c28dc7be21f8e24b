// A log of torch's DebugMode line by line, and what is wrong in one of them.

#ifndef PLUMBLINE_FORMATS_PYTORCH_LOG_LINES_H_
#define PLUMBLINE_FORMATS_PYTORCH_LOG_LINES_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::debug_mode {

inline Error At(size_t line, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("line {}: {}", line, what));
}

// The lines of a text, one after the other.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  // False at the end.
  bool Next() {
    if (at_ >= text_.size()) return false;
    begin_ = at_;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = text_.substr(at_, end - at_);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    at_ = end + 1;
    ++number_;
    return true;
  }
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] size_t number() const { return number_; }
  [[nodiscard]] size_t begin() const { return begin_; }  // byte at which the line begins
  [[nodiscard]] bool is_last() const { return at_ >= text_.size(); }

 private:
  std::string_view text_, line_;
  size_t at_ = 0, begin_ = 0, number_ = 0;
};

}  // namespace plumbline::debug_mode

#endif  // PLUMBLINE_FORMATS_PYTORCH_LOG_LINES_H_
