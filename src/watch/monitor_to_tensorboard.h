// `plumb csv2tensorboard`: what a training monitor wrote as event files of TensorBoard.

#ifndef PLUMBLINE_WATCH_MONITOR_TO_TENSORBOARD_H_
#define PLUMBLINE_WATCH_MONITOR_TO_TENSORBOARD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

struct TensorboardOptions {
  // Directories of a monitor from one time to another, both included: "Dec03_21-34-40". Empty: any.
  std::string time_start, time_end;
  std::vector<std::string> kinds;  // of files, of TensorboardKinds(); empty: all
  int threads = 0;                 // 0: one per core
  // Called when a rank's files of one kind are done; never by two threads at once.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

// Kinds of files that become event files: "actv", "grad_reduced", ...
const std::vector<std::string>& TensorboardKinds();

struct TensorboardReport {
  std::string path;  // of the output
  uint64_t directories = 0, event_files = 0, scalars = 0;
  uint64_t left_out = 0;  // rows from the first step of a later directory of their rank on
  uint64_t repeated = 0;  // rows that name a tensor of a step a second time; the first one stays
  std::vector<std::string> warnings;
  std::string damage;  // " in what could be read (...)"; empty: all could be
};

// Reads the csv files of the monitor's directories in `data` (load/monitor_files.h) and writes
// `output`/rank{R}/{kind}/events.out.tfevents.*; an empty `output` is
// `data`/{MonDD_HH-MM-SS}-csv2tensorboard_by_step, in the time of Asia/Shanghai as upstream has it.
// Tags are vp{stage}:{name}/{statistic}, of activations vp{stage}:{name}:micro{m}/{statistic}.
// Event files that are there are replaced, and a warning says so. Memory: the rows of one csv file
// per thread. What cannot be read is told, and the rest written. kNotFound (no directory, no row),
// kInvalidArgument (time, kind), kCorrupt (nothing can be read), kIo. After an error OUT has no
// event files of these ranks and kinds.
Result<TensorboardReport> MonitorToTensorboard(const std::string& data, const std::string& output,
                                               const TensorboardOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_MONITOR_TO_TENSORBOARD_H_
