// How far a command is, on a terminal.

#ifndef PLUMBLINE_CLI_PROGRESS_H_
#define PLUMBLINE_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "base/process/status_line.h"

namespace plumbline::cli {

struct ProgressStep {
  double share = 0;            // of the work that is done, 0 to 1
  uint64_t done = 0, all = 0;  // parts, such as files; `all` 0: not counted
  uint64_t bytes = 0;          // done; 0: the rate is in parts
};

// Where all parts are alike.
ProgressStep PartsDone(uint64_t done, uint64_t all);

// "comparing: 25 % (5 of 20 files), 12 files/s, 3 s left" after so many seconds, and at the end
// "comparing: 100 % (20 of 20 files), 12 files/s, in 4 s". `part` is "file".
std::string ProgressLine(const std::string& what, const std::string& part, const ProgressStep& step,
                         double seconds);

// One line on stderr that is written over, from half a second on and five times a second; nothing
// where stderr is no terminal. Thread-safe.
class Progress {
 public:
  // `what` is "comparing", `part` "file".
  Progress(std::string what, std::string part, std::FILE* stream = stderr);

  // Whether anything will be shown.
  [[nodiscard]] bool is_on() const { return line_.is_on(); }
  void Show(const ProgressStep& step);
  // The same at a time since the start of the work.
  void ShowAt(const ProgressStep& step, double seconds);

 private:
  const std::string what_, part_;
  const StatusLine line_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  double last_ = 0;  // seconds; 0: nothing shown
};

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_PROGRESS_H_
