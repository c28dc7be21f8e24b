// `plumb merge`: the results of single ranks as one table.

#ifndef PLUMBLINE_RANKS_MERGE_RESULTS_H_
#define PLUMBLINE_RANKS_MERGE_RESULTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/table/xlsx.h"
#include "plumbline/result.h"

namespace plumbline::ranks {

// config.yaml of `merge_result`: which calls and which metrics to put side by side.

struct MergeConfig {
  // "Distributed", "Distributed.all_reduce", "Distributed.all_reduce.0" or with the direction.
  std::vector<std::string> apis;
  std::vector<std::string> metrics;  // column names; empty: all of the tables
};

// Keys api (a list of texts, not empty) and compare_index (a list of texts, null or absent).
// kNotFound, kIo; kCorrupt (not YAML, with the line); kInvalidArgument (another form).
Result<MergeConfig> ReadMergeConfig(const std::string& path);

// The result tables of single ranks: which files there are, and the rows of one.

// The table of one rank, in one file or in parts.
struct RankTable {
  int64_t rank = 0;  // the target's
  std::vector<std::string> files;
};

struct RankTables {
  std::vector<RankTable> tables;      // by rank
  std::vector<std::string> warnings;  // older tables of a rank, which are not read
  std::vector<std::string> left_out;  // tables of runs without ranks
};

// kInvalidArgument names a .xlsx that is neither a result of a rank nor a merged one, and two sets
// of one rank that cannot be told apart by time.
Result<RankTables> FindRankTables(const std::string& directory);

// Calls `visit` for every row behind a header, together with that header. Errors of the readers.
using TableVisitor =
    std::function<Status(const std::vector<std::string>& header, std::span<const xlsx::Cell> row)>;
Status ReadTable(const std::string& path, const TableVisitor& visit);

// `merge_result`: chosen calls of all ranks side by side, one sheet per metric.

struct MergeReport {
  std::string file;  // multi_ranks_compare_merge_<time>.xlsx
  std::vector<int64_t> ranks;
  std::vector<std::string> metrics;  // sheets, in order
  size_t rows = 0;                   // of each sheet
  std::vector<std::string> warnings;
  // A line for each rank, and each table of a run without ranks, that the workbook does not have.
  std::vector<std::string> left_out;
};

// Reads the result tables of all ranks in `input_directory`: compare_result_rank{n}-rank{m}_<time>
// and compare_result_rank{n}_<time>, .xlsx or .csv; of a rank the latest, and the workbook before
// the CSV. Writes one workbook into `output_directory` (created when missing).
// kInvalidArgument: a foreign .xlsx, fewer than two ranks, nothing found of what the config names;
// kNotFound, kIo, kCorrupt.
Result<MergeReport> MergeResults(const std::string& input_directory,
                                 const std::string& output_directory, const MergeConfig& config,
                                 int threads);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_MERGE_RESULTS_H_
