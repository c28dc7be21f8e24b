// A line of a terminal that is written over, as long as work goes on. Lines of the log go above it.

#ifndef PLUMBLINE_BASE_PROCESS_STATUS_LINE_H_
#define PLUMBLINE_BASE_PROCESS_STATUS_LINE_H_

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace plumbline {

// Several may be there; one at a time is on the terminal. Thread-safe.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* stream = stderr);

  // Whether anything will be shown: the stream is a terminal.
  [[nodiscard]] bool is_on() const { return is_on_; }
  // Over what was shown before. The line is cut to the width of the terminal. `is_end`: it stays.
  void Show(std::string_view text, bool is_end) const;

 private:
  std::FILE* const stream_;
  const bool is_on_;
};

// While it lives, no such line is on the terminal. Costs nothing where none was ever shown.
class StatusLineAside {
 public:
  StatusLineAside();

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_STATUS_LINE_H_
