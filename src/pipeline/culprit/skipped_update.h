// Parameters that one side's optimizer updates and the other side's leaves as they are.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_SKIPPED_UPDATE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_SKIPPED_UPDATE_H_

#include <optional>

#include "pipeline/culprit/culprit_text.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The first call without counterpart that writes into a tensor which requires a gradient and which
// no recorded call made, where the other side has the same tensor, makes the same call for others
// (a pair that agrees), and neither writes into this one nor computes what it would become: the
// row is the call's result. Tensors are followed by their contents; of equal ones, as biases that
// are still zero, as many must be updated. Nothing in a comparison of saved values.
// Requires: rows and calls are judged.
std::optional<CulpritEvent> FindSkippedUpdate(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_SKIPPED_UPDATE_H_
