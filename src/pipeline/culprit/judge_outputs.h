// The verdict on what one call returns.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_JUDGE_OUTPUTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_JUDGE_OUTPUTS_H_

#include <cstdint>

#include "measure/standards.h"
#include "pipeline/culprit/call_inputs.h"
#include "pipeline/culprit/walk_state.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// A paired call whose inputs are judged.
struct JudgedInputs {
  uint32_t call = 0;  // index into Comparison::calls
  measure::CallClass call_class = measure::CallClass::kDefault;
  const CallInputs& inputs;
};

// Judges a result `row` of the call by its own rounding and by its inputs
// (docs/design/verdict.md, "What a correct call may do"). Adds an event to `state.found` where the
// call is to blame.
void JudgeOutput(WalkState& state, const JudgedInputs& call, ComparedRow& row);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_JUDGE_OUTPUTS_H_
