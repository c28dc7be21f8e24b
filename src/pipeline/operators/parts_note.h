// What is odd about the parts of operators that FFTS+ cut, of one tensor.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_PARTS_NOTE_H_
#define PLUMBLINE_PIPELINE_OPERATORS_PARTS_NOTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "measure/array_verdict.h"
#include "measure/compared_row.h"
#include "pipeline/operators/operator_tensors.h"
#include "pipeline/operators/paired_operator.h"

namespace plumbline::pipeline {

// Collects it from both sides.
class PartsNote {
 public:
  void Add(const OperatorTensors& tensors, const TensorPlace& place) {
    AddText(tensors.remark());
    const std::string disagreement = place.is_input ? "" : tensors.Disagreement(place.index);
    AddText(disagreement);
    do_agree_ = do_agree_ && disagreement.empty();
    is_whole_ = is_whole_ && tensors.is_whole();
    if (has_any_ && tensors.numbers() != numbers_) are_same_ = false;
    numbers_ = tensors.numbers();
    has_any_ = true;
  }
  // Outputs are the ones that are put together. One that lacks a part never passes, and is not
  // wrong either where the other side lacks another one.
  void Apply(OperatorRow& row) const {
    if (row.is_input) return;
    if (!text_.empty()) row.reason += (row.reason.empty() ? "" : ",") + text_;
    if (row.verdict.verdict == Verdict::kNotComparable) return;
    const bool passes = measure::IsGood(row.verdict.verdict);
    if (!is_whole_ && (passes || !are_same_)) {
      row.verdict = measure::NotComparable("parts-missing");
    } else if (!do_agree_ && passes) {
      row.verdict = measure::NotComparable("parts-differ");
    }
  }

 private:
  void AddText(const std::string& sentence) {
    if (text_.find(sentence) == std::string::npos) text_ += (text_.empty() ? "" : ",") + sentence;
  }

  std::string text_;
  bool is_whole_ = true, do_agree_ = true;
  bool has_any_ = false, are_same_ = true;  // the same parts on both sides
  std::vector<int64_t> numbers_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_PARTS_NOTE_H_
