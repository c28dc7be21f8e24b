// Dumps of static graphs brought to their final form, once or beside the training.

#ifndef PLUMBLINE_GRAPHS_FINISH_DUMP_H_
#define PLUMBLINE_GRAPHS_FINISH_DUMP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "load/graph_dump.h"
#include "load/statistic_values.h"
#include "plumbline/result.h"

namespace plumbline::graphs {

// One pass at a time over a directory of a static-graph dump.

// Held from Take() on; the file that it needs is gone when it ends. A killed process leaves the
// file, which the next pass takes over.
class PassLock {
 public:
  // kInvalidArgument while another process holds it; kIo.
  static Result<PassLock> Take(const std::string& directory);
  PassLock(PassLock&&) = default;
  PassLock& operator=(PassLock&&) = delete;
  ~PassLock();

 private:
  PassLock(Directory place, File file);

  Directory place_;
  File file_;
};

// Statistics of a static-graph dump made from its tensors, for devices whose own dump has none.

struct FinishOptions {
  std::vector<std::string> items = {"max", "min", "avg", "l2norm"};  // of statistic_category
  bool drops_tensors = false;  // once their statistics are on the disk
  uint64_t sample_num = 0;     // cuts larger tensors to their first elements; 0: does not
  int digits = load::kSixDigits;
  int threads = 0;  // 0: one per core
};

struct FinishReport {
  uint64_t directories = 0;           // that got rows
  uint64_t rows = 0;                  // written for the first time
  uint64_t dropped = 0;               // tensor files
  uint64_t sampled = 0;               // tensor files that were cut (graph_sheets.h)
  uint64_t unfinished = 0;            // files that the training is still writing; for the next pass
  uint64_t unreadable = 0;            // damaged files, which stay where they are
  uint64_t contradicted = 0;          // files that stay, because their row is of other values
  uint64_t left_out = 0;              // files whose names are none of a kernel's tensor
  std::vector<std::string> problems;  // one sentence each; at most 20
};

// Passes over one tree. A pass writes statistic.csv of every iteration's directory anew and whole,
// with the rows that it had, and removes tensors only when their rows are on the disk, those of
// earlier passes after they were made again: a killed pass loses nothing, and the next one goes on.
// Single-threaded from outside.
class DumpFinisher {
 public:
  DumpFinisher(std::string tree, FinishOptions options)
      : tree_(std::move(tree)), options_(std::move(options)) {}

  // With `is_live` the training still runs: files that are not complete, or younger than a second,
  // wait for the next pass, directories without news since the last one are skipped, and samples
  // are not taken. kInvalidArgument for unknown items, where another pass is at work in a
  // directory, and where a statistic.csv has other columns; kCorrupt for a damaged one.
  Result<FinishReport> Pass(bool is_live);

 private:
  Status FinishDirectory(const std::string& path, const load::NextNames& next, bool is_live,
                         FinishReport& report);

  std::string tree_;
  FinishOptions options_;
  std::map<std::string, int64_t> done_;  // directories without anything left to do, since then
};

// Passes beside a training.

// Owns one thread while a pass runs. Single-threaded from outside. A destroyed one waits for the
// pass; what it did not see is there for the next one.
class BackgroundFinisher {
 public:
  BackgroundFinisher(std::string tree, FinishOptions options)
      : finisher_(std::move(tree), std::move(options)) {}

  // Begins a pass over what is complete; does nothing while one runs.
  void Begin();
  // Waits, then takes everything that is left. The counts are of all passes. The training must not
  // write any more. Errors of the last pass, or of an earlier one if the last went well.
  Result<FinishReport> Finish();

 private:
  void Add(const Result<FinishReport>& report);

  DumpFinisher finisher_;
  FinishReport total_;
  std::optional<Error> error_;
  std::atomic<bool> runs_ = false;
  std::jthread thread_;  // the last member: joined before the others end
};

}  // namespace plumbline::graphs

#endif  // PLUMBLINE_GRAPHS_FINISH_DUMP_H_
