// Paired operators measured: what is compared, parts and inputs of operators that FFTS+ cut, rows.

#ifndef PLUMBLINE_OPERATORS_MEASURE_OPERATOR_H_
#define PLUMBLINE_OPERATORS_MEASURE_OPERATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_types.h"
#include "load/operator_dumps.h"
#include "measure/array_verdict.h"
#include "measure/compared_row.h"
#include "measure/dump_algorithms.h"
#include "operators/operator_tensors.h"
#include "operators/user_code.h"
#include "plumbline/tensor.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

// What is compared of two recordings of operators: pairs of operators, and the rows that come of
// them. Plain values.

// One input or output of an operator.
struct TensorPlace {
  bool is_input = false;
  size_t index = 0;
};

// Where the golden side of one tensor lies.
struct GoldenTensor {
  std::string path, file_name;  // load::OperatorDump
  load::OperatorSlices slices;
  std::string name;       // of the operator
  bool is_array = false;  // the file is one array; otherwise `place` says which tensor it is
  TensorPlace place;
  // The layout to compare in, where a rule file says one.
  std::optional<DeviceFormat> format;
  Shape sizes;
};

// What one tensor of the target is compared with. No golden: `missing` says why.
struct TensorTask {
  TensorPlace target;
  std::optional<GoldenTensor> golden;
  std::string missing;
  // The rule file says that the framework has no such tensor: nothing is missing.
  bool stands_for_nothing = false;
};

struct PairedOperator {
  size_t index = 0;      // of the row group, from 0
  int64_t sequence = 0;  // in the order of execution, where a rule file says so; else 0
  std::string op_type;
  std::string target_name = "*", golden_name = "*";
  std::string target_path, golden_path;  // empty: none on that side
  load::OperatorSlices target_slices, golden_slices;
  std::string target_file_name, golden_file_name;
  // By a rule file: the tensors that have a counterpart somewhere. Nothing: all, by position.
  std::optional<std::vector<TensorTask>> tasks;
  std::string reason;  // why nothing is compared; empty: it is
};

// One line of the result.
struct OperatorRow {
  size_t pair = 0;  // index into the pairs
  bool is_input = false;
  std::string golden_name;  // of this tensor
  std::string target_path, golden_path;
  std::string target_type, golden_type;
  uint64_t target_address = 0, golden_address = 0;
  std::string tensor;               // "conv1:output:0"; empty: the row stands for the operator
  std::string shape;                // "[1,16,8,8]"
  std::string format;               // in which both were measured: "NCHW"; empty: not known
  std::vector<std::string> values;  // one per algorithm; empty: nothing was compared
  std::string overflow;             // "YES", "NO", "NaN": not looked for
  std::string reason;
  bool paired = true;
  measure::ArrayVerdict verdict = measure::NotComparable("unreadable");
};

// "conv1:output:0".
inline std::string TensorName(const std::string& operator_name, const TensorPlace& place) {
  return operator_name + (place.is_input ? ":input:" : ":output:") + std::to_string(place.index);
}

// What is odd about the parts of operators that FFTS+ cut, of one tensor.

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

// The inputs of operators that FFTS+ cut into tasks: where nothing tells how they make a whole
// (operator_tensors.h), they are compared part by part, and the row of an input stands for all.

// Two tensors to compare. Borrows them.
struct TensorPair {
  const acl::DumpedTensor* target = nullptr;
  const acl::DumpedTensor* golden = nullptr;
  int64_t part = 0;
};

struct InputPairs {
  std::vector<TensorPair> pairs;
  bool is_whole = true;  // false: some part is missing, or has no counterpart
};

// The whole inputs where both sides have one; else the parts of one input, each with the golden
// part of its number. An input that is the same in all parts of a side is one tensor, which stands
// for each. At least one pair, unless both sides were cut in ways that share no part. Requires:
// both messages have the input.
InputPairs PairInputs(const OperatorTensors& target, const OperatorTensors& golden, size_t index);
// The same where golden is one tensor: pairs without it.
InputPairs PairInputs(const OperatorTensors& target, size_t index);

// Whether a verdict says more against a tensor than another one. Zeros on both sides say nothing.
bool IsWorse(const measure::ArrayVerdict& one, const measure::ArrayVerdict& other);

// Reads both sides of one pair of operators and measures how far their tensors differ.

struct MeasureSettings {
  std::vector<measure::DumpAlgorithm> algorithms;
  uint64_t most_elements = 0;  // compare only the first; 0: all
  bool with_overflow = false;  // fill OperatorRow::overflow
  OwnFunctions own = {};       // behind the algorithms
  // Called with the elements of each pair that is measured, before its values are there.
  std::function<void(const OperatorRow& row, const acl::Elements& target,
                     const acl::Elements& golden)>
      on_pair = {};
};

// The rows of one pair: inputs, then outputs. At least one; what cannot be read or does not fit is
// a row that says why. `pair_index` goes into the rows.
std::vector<OperatorRow> MeasureOperator(const PairedOperator& pair, size_t pair_index,
                                         const MeasureSettings& settings, OwnLayouts& layouts);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_MEASURE_OPERATOR_H_
