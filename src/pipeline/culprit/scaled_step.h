// Steps of optimizers that nothing recorded, which are a number of times as long as golden's.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_SCALED_STEP_H_
#define PLUMBLINE_PIPELINE_CULPRIT_SCALED_STEP_H_

#include <optional>
#include <span>

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/walk_state.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

struct ScaledStep {
  double factor = 1;     // of the target's step
  double explained = 0;  // by how much noise may make it differ from one
};

// The one number of times that `target` is `golden`, by least squares, where it differs from one by
// more than eight times its own uncertainty and what is left is small: either beside that
// difference, or no more than `rounding`, the probable rounding of each element, explains.
// `error`: relative error that the two have anyway. Requires: lists of one length.
std::optional<ScaledStep> FindFactor(std::span<const double> target, std::span<const double> golden,
                                     std::span<const double> rounding, double error);

// Of the step before `row`, which reads a parameter (pipeline/culprit/unrecorded_step.h). A weight
// may agree within the noise although its step does not. Noise moves elements one by one: no two
// steps differ by one factor because of it, but for the noise of a norm by which all gradients are
// limited, which is no more than theirs. Steps that do not depend on the size of a gradient (Adam)
// show nothing.
std::optional<ScaledStep> FindScaledStep(const WalkState& state, const ComparedRow& row);

// What is said of it.
CulpritFact FactOf(const ScaledStep& step);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_SCALED_STEP_H_
