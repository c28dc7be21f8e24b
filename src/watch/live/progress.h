// How far a monitor is, on the terminal of the training.

#ifndef PLUMBLINE_WATCH_LIVE_PROGRESS_H_
#define PLUMBLINE_WATCH_LIVE_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/process/status_line.h"

namespace plumbline::watch {

// What a monitor did so far.
struct MonitorCounts {
  int64_t step = 0;  // the last one
  uint64_t alerts = 0, hits = 0, rows = 0;
  uint64_t bytes = 0;  // written
};

// "monitor: step 120, 3 alerts, 2 hits, 5,432 rows, 2.3 MB in ./monitor_output/...". Hits are told
// where there are some.
std::string ProgressText(const MonitorCounts& counts, const std::string& place);

// One line on stderr, where that is a terminal and information is logged, at most once a second.
class MonitorProgress {
 public:
  // `place`: where the files are; empty: there are none.
  explicit MonitorProgress(std::string place, std::FILE* stream = stderr);

  void Show(const MonitorCounts& counts);
  // The last line stays on the terminal, if there was any.
  void End(const MonitorCounts& counts);

 private:
  StatusLine line_;
  std::string place_;
  bool is_on_, was_shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_PROGRESS_H_
