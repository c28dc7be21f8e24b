// Compares the dump of a compiled graph with that of the uncompiled run, or of one compiled without
// fusion (docs/reference/torchair.md).

#ifndef PLUMBLINE_PIPELINE_GRAPHS_COMPARE_TORCHAIR_H_
#define PLUMBLINE_PIPELINE_GRAPHS_COMPARE_TORCHAIR_H_

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "measure/torchair_metrics.h"
#include "pipeline/graphs/tensor_answer.h"

namespace plumbline::pipeline {

// One tensor of a row, cells of the report.
struct TorchairTensor {
  std::string path, operator_type, dtype, shape;
  std::array<std::string, 3> statistics;  // max, min, mean
};

struct TorchairRow {
  int64_t token = 0;
  TorchairTensor golden, target;
  std::optional<measure::TorchairMetrics> metrics;
  std::string fail_reason;
  JudgedTensor judged;
  std::tuple<int64_t, bool, size_t> order{};  // time, is output, position
};

struct TorchairComparison {
  std::optional<int64_t> rank;
  bool is_golden_fx = false;
  std::vector<TorchairRow> rows;  // as they were computed
  uint64_t without_name = 0;      // operators that the golden run has no name for
  TensorAnswer answer;
};

struct TorchairRequest {
  std::string target, golden;
  std::vector<int64_t> ranks;  // empty: all that both have
  int threads = 0;
};

// One comparison per rank; one where the dumps have none. kNotFound: no graph text below the
// target, no dump of an operator, no rank that both have, or not that one. kInvalidArgument: ranks
// asked of dumps that have none. kCorrupt: a graph text. A tensor file that is damaged is a row.
Result<std::vector<TorchairComparison>> CompareTorchair(const TorchairRequest& request);

// msprobe_cmp_report[_rank{n}]_<time>.csv in `directory`; its path.
Result<std::string> WriteTorchairReport(const TorchairComparison& comparison,
                                        const std::string& directory);
std::string TorchairText(const TorchairComparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_COMPARE_TORCHAIR_H_
