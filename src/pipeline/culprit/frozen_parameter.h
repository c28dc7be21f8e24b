// Parameters that one side alone goes on training.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_FROZEN_PARAMETER_H_
#define PLUMBLINE_PIPELINE_CULPRIT_FROZEN_PARAMETER_H_

#include <optional>

#include "pipeline/culprit/culprit_text.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The first forward pair that reads a tensor which requires a gradient on one side only, although
// the same call of the step before, or the same module before, read one there that did on both
// sides. Only where gradients were recorded. Requires: verdicts of all rows.
std::optional<CulpritEvent> FindFrozenParameter(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_FROZEN_PARAMETER_H_
