// What calls that only one side made have to do with a wrong input.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_LONE_CALL_CAUSE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_LONE_CALL_CAUSE_H_

#include <string>

#include "measure/cause_class.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether a call of this name adds one of its operands to the other.
bool AddsTwo(const std::string& call_name);

// Where the input `row` is the result of a call that only one side made: puts that into `cause`,
// as the cause itself where nothing else explains more. Returns "missing call:
// Tensor.div_.0.forward after Torch.topk.0.forward" where such a call explains the difference:
// where the other side has none of its own there. Else empty.
std::string AddLoneCall(const Comparison& comparison, const ComparedRow& row,
                        measure::Cause& cause);

// The same of a layer that one side leaves out, where the calls behind it pair with those of other
// layers. Empty where there is none.
std::string AddSkippedCalls(const Comparison& comparison, const ComparedRow& row,
                            measure::Cause& cause);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_LONE_CALL_CAUSE_H_
