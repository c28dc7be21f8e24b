// Compares two dumps of ATB (docs/reference/atb.md).

#ifndef PLUMBLINE_GRAPHS_COMPARE_ATB_H_
#define PLUMBLINE_GRAPHS_COMPARE_ATB_H_

#include <optional>
#include <string>
#include <vector>

#include "load/atb_dump.h"
#include "measure/array_verdict.h"
#include "plumbline/compare.h"
#include "report/tensor_answer.h"

namespace plumbline::graphs {

struct AtbRow {
  std::optional<load::AtbTensor> target, golden;
  TensorMetrics metrics;                                            // of tensors
  std::array<std::string, 4> target_statistics, golden_statistics;  // cells
  measure::ArrayVerdict verdict;
  std::string problem;  // why a file could not be read
  [[nodiscard]] const load::AtbTensor& any() const { return target ? *target : *golden; }
};

struct AtbComparison {
  bool has_tensors = false;
  std::vector<AtbRow> rows;  // the target's order, then golden ones alone
  uint64_t left_out = 0;     // rows of the two files that could not be used
};

// kInvalidArgument when one side holds tensors and the other statistics; errors of ReadAtbDump().
Result<AtbComparison> CompareAtb(const std::string& target, const std::string& golden, int threads);

// atb_{stats|tensor}_compare_result_<time>.xlsx in `directory`; its path.
Result<std::string> WriteAtbWorkbook(const AtbComparison& comparison, const std::string& directory);
report::TensorAnswer AtbAnswer(const AtbComparison& comparison);

}  // namespace plumbline::graphs

#endif  // PLUMBLINE_GRAPHS_COMPARE_ATB_H_
