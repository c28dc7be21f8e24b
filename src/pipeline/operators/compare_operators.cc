#include "pipeline/operators/compare_operators.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/number_text.h"
#include "base/parallel.h"
#include "pipeline/operators/measure_operator.h"

namespace plumbline::pipeline {
namespace {

// What the answer says of each row, in the order of computation.
TensorAnswer AnswerOfRows(const OperatorComparison& comparison) {
  std::vector<JudgedTensor> judged;
  judged.reserve(comparison.rows.size());
  for (const OperatorRow& row : comparison.rows) {
    const PairedOperator& pair = comparison.pairs[row.pair];
    const bool has_target = !pair.target_path.empty();
    JudgedTensor tensor;
    tensor.operation = has_target ? pair.target_name : pair.golden_name;
    tensor.name = row.tensor.empty() ? tensor.operation : row.tensor;
    tensor.is_output = !row.is_input;
    tensor.paired = row.paired;
    tensor.verdict = row.verdict;
    judged.push_back(std::move(tensor));
  }
  return AnswerOf(judged, comparison.unnamed);
}

}  // namespace

void MeasurePairs(const OperatorRequest& request, OperatorComparison& comparison) {
  const MeasureSettings settings{request.algorithms, request.most_elements, request.with_overflow,
                                 request.own};
  comparison.with_overflow = request.with_overflow;
  OwnLayouts layouts(request.own.code.get());
  std::vector<std::vector<OperatorRow>> rows(comparison.pairs.size());
  RunWithThreads(request.threads, [&] {
    ParallelFor(rows.size(), [&](size_t i) {
      rows[i] = MeasureOperator(comparison.pairs[i], i, settings, layouts);
    });
  });
  size_t count = 0;
  for (const std::vector<OperatorRow>& of_pair : rows) count += of_pair.size();
  comparison.rows.reserve(count);
  for (std::vector<OperatorRow>& of_pair : rows) {
    std::move(of_pair.begin(), of_pair.end(), std::back_inserter(comparison.rows));
  }
  comparison.answer = AnswerOfRows(comparison);
}

Result<OperatorComparison> CompareOperators(const OperatorRequest& request) {
  PL_TRY_ASSIGN(OperatorComparison comparison, PairOperators(request));
  MeasurePairs(request, comparison);
  return comparison;
}

std::string OperatorText(const OperatorComparison& comparison) {
  std::string text = AnswerText(comparison.answer, "dumps without a name");
  constexpr size_t kMostNotes = 20;
  for (size_t i = 0; i < std::min(kMostNotes, comparison.notes.size()); ++i) {
    text += "note: " + OneLine(comparison.notes[i]) + "\n";
  }
  if (comparison.notes.size() > kMostNotes) {
    text += "and " + CountText(comparison.notes.size() - kMostNotes, "note") + " more\n";
  }
  return text;
}

}  // namespace plumbline::pipeline
