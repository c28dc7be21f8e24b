// `merge_result`: chosen calls of all ranks side by side, one sheet per metric.

#ifndef PLUMBLINE_PIPELINE_RANKS_MERGE_RESULTS_H_
#define PLUMBLINE_PIPELINE_RANKS_MERGE_RESULTS_H_

#include <string>
#include <vector>

#include "pipeline/ranks/merge_config.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RANKS_MERGE_RESULTS_H_
