// Reads both sides of one pair of operators and measures how far their tensors differ.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_MEASURE_OPERATOR_H_
#define PLUMBLINE_PIPELINE_OPERATORS_MEASURE_OPERATOR_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "formats/acl_types.h"
#include "measure/dump_algorithms.h"
#include "pipeline/operators/paired_operator.h"
#include "pipeline/operators/plain_tensor.h"
#include "pipeline/user_code/user_code.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_MEASURE_OPERATOR_H_
