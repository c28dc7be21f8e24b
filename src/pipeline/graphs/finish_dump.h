// Statistics of a static-graph dump made from its tensors, for devices whose own dump has none.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_FINISH_DUMP_H_
#define PLUMBLINE_PIPELINE_GRAPHS_FINISH_DUMP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "load/graph_dump.h"
#include "pipeline/graphs/statistic_values.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

struct FinishOptions {
  std::vector<std::string> items = {"max", "min", "avg", "l2norm"};  // of statistic_category
  bool drops_tensors = false;  // once their statistics are on the disk
  uint64_t sample_num = 0;     // cuts larger tensors to their first elements; 0: does not
  int digits = kSixDigits;
  int threads = 0;  // 0: one per core
};

struct FinishReport {
  uint64_t directories = 0;           // that got rows
  uint64_t rows = 0;                  // written for the first time
  uint64_t dropped = 0;               // tensor files
  uint64_t sampled = 0;               // tensor files that were cut (sample_tensors.h)
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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_FINISH_DUMP_H_
