// The verdict on what one call reads.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_JUDGE_INPUTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_JUDGE_INPUTS_H_

#include <cstdint>

#include "pipeline/culprit/call_inputs.h"
#include "pipeline/culprit/walk_state.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Judges an input `row` of the paired call number `call` and adds it to `inputs`, those of this
// call so far: contents met before keep the verdict they had there, others come from outside the
// recording or from calls without counterpart (docs/design/verdict.md). Adds an event to
// `state.found` where the row itself is wrong; arguments that differ go to `inputs`.
void JudgeInput(WalkState& state, uint32_t call, ComparedRow& row, CallInputs& inputs);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_JUDGE_INPUTS_H_
