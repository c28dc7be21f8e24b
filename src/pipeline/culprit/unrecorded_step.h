// What optimizers that make no recorded calls (foreach, fused) may turn differing gradients into.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_UNRECORDED_STEP_H_
#define PLUMBLINE_PIPELINE_CULPRIT_UNRECORDED_STEP_H_

#include <optional>
#include <vector>

#include "pipeline/culprit/walk_state.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The relative error that a parameter may have which `row` reads after a step, and a call before
// the step as it was then. With tensors: all of it, where every element moved as far on both sides
// as the relative difference of its gradients explains, and no element further than three times the
// largest of golden. With statistics: what elements may make whose gradients are rounding. Nothing
// where no earlier call read the parameter, no backward call returned its gradient, or an element
// moved otherwise.
std::optional<double> ExplainedByStep(const WalkState& state, const ComparedRow& row);

// Whether `row` reads such a parameter: one that an earlier call read as it was before, and that
// got a gradient on both sides.
bool IsReadAfterStep(const WalkState& state, const ComparedRow& row);

// The rows that may have read, before a step, the parameter that `row` reads; the latest first.
std::vector<const ComparedRow*> ReadBeforeStep(const WalkState& state, const ComparedRow& row);

// What a step made of a parameter that `row` reads behind it.
struct StepTaken {
  std::vector<double> before[2], after[2];  // golden, target
  std::vector<double> gradient;             // golden's of that step; empty: not all of it is known
  // The largest relative error of the gradients that the step may remember.
  double gradient_error = 0;
};
// With tensors: the step before `row`, as IsReadAfterStep() tells it. Nothing without elements.
std::optional<StepTaken> StepBefore(const WalkState& state, const ComparedRow& row);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_UNRECORDED_STEP_H_
