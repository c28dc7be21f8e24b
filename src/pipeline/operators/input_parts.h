// The inputs of operators that FFTS+ cut into tasks: where nothing tells how they make a whole
// (operator_tensors.h), they are compared part by part, and the row of an input stands for all.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_INPUT_PARTS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_INPUT_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/acl_dump.h"
#include "measure/array_verdict.h"
#include "pipeline/operators/operator_tensors.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_INPUT_PARTS_H_
