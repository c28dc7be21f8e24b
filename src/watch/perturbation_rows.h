// `plumb free_benchmark merge`: the rows of a perturbation check over all ranks.

#ifndef PLUMBLINE_WATCH_PERTURBATION_ROWS_H_
#define PLUMBLINE_WATCH_PERTURBATION_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

struct PerturbationReport {
  std::string path;    // of free_benchmark_merged.csv
  std::string answer;  // one line: what comes first
  uint64_t rows = 0, ranks = 0;
  std::vector<std::string> warnings;  // of rows that are left out
};

// Reads step{N}/rank{R}/free_benchmark.csv and rank{R}/free_benchmark_summary.csv of a dump path,
// and the one free_benchmark.csv that upstream writes for MindSpore, whose second column is called
// pert_type. Writes all rows to `output`/free_benchmark_merged.csv, sorted by step, order of the
// calls, mode and rank, with the number of ranks that report the same output. An empty `output` is
// `data`; another is made if missing. kNotFound (no directory, no file), kCorrupt (no such table),
// kIo.
Result<PerturbationReport> MergePerturbations(const std::string& data, const std::string& output);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_PERTURBATION_ROWS_H_
