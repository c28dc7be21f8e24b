// Parameters and what is kept beside them that one side updates and the other leaves as they are.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_SKIPPED_UPDATE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_SKIPPED_UPDATE_H_

#include <optional>

#include "pipeline/culprit/culprit_text.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The first call without counterpart that writes into a parameter, or into another tensor which
// both sides have written into in that way before (a moment, an average), where the other side has
// the same tensor, makes the same call for others as often as that (a pair that agrees), and either
// does not write into this one or goes on with the next update as if it were none, and does not
// compute what it would become: the row is the call's result. Tensors are followed by their
// contents, which pairs translate from one side to the other; of equal ones, as biases that are
// still zero, as many must be updated. Nothing in a comparison of saved values. Requires: rows and
// calls are judged.
std::optional<CulpritEvent> FindSkippedUpdate(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_SKIPPED_UPDATE_H_
