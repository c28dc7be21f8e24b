// Why a call is wrong, in words.

#ifndef PLUMBLINE_EXPLAIN_CAUSE_OF_CALL_H_
#define PLUMBLINE_EXPLAIN_CAUSE_OF_CALL_H_

#include <string>

#include "measure/cause_class.h"
#include "plumbline/compare.h"

namespace plumbline::explain {

// What calls that only one side made have to do with a wrong input.

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

// What kind of error the first wrong call shows, with evidence (docs/reference/causes.md).

// Fills cause, cause_text and confidence of comparison.first_wrong_call, if there is one. In mode
// tensor it reads the files of that call and of the few tensors that may explain the difference:
// those of neighbouring calls whose statistics fit, of other steps and of sibling ranks of the same
// dump. Files that cannot be read are left out. Requires: JudgeRows() was called.
void ExplainCause(const Run& target, const Run& golden, Comparison& comparison);

}  // namespace plumbline::explain

#endif  // PLUMBLINE_EXPLAIN_CAUSE_OF_CALL_H_
