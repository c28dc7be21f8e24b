// What is compared of two recordings of operators: pairs of operators, and the rows that come of
// them. Plain values.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_PAIRED_OPERATOR_H_
#define PLUMBLINE_PIPELINE_OPERATORS_PAIRED_OPERATOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/operator_dumps.h"
#include "measure/array_verdict.h"
#include "plumbline/tensor.h"
#include "tensor/device_format.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_PAIRED_OPERATOR_H_
