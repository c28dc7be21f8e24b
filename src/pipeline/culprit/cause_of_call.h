// What kind of error the first wrong call shows, with evidence (docs/reference/causes.md).

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CAUSE_OF_CALL_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CAUSE_OF_CALL_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills cause, cause_text and confidence of comparison.first_wrong_call, if there is one. In mode
// tensor it reads the files of that call and of the few tensors that may explain the difference:
// those of neighbouring calls whose statistics fit, of other steps and of sibling ranks of the same
// dump. Files that cannot be read are left out. Requires: JudgeRows() was called.
void ExplainCause(const Run& target, const Run& golden, Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CAUSE_OF_CALL_H_
