// Gradients that a call of several nodes gives to what it read, of which no recorder sees the last.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_UNSEEN_GRADIENT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_UNSEEN_GRADIENT_H_

#include <optional>

#include "pipeline/culprit/walk_state.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The relative error, without a ceiling, of the gradient of a value that a backward call gets: by
// way of the distances and losses that read the value in forward, and of the gradients they
// returned for it, of which little may be left. Nothing where no such call is known.
std::optional<double> ExplainedByReaders(const WalkState& state, const ComparedRow& row);

// The same of a gradient that the backward call of such a distance returned.
double ExplainedByDistance(const WalkState& state, const ComparedRow& row, const Item& result);

// Of an error that is explained without a ceiling, as much as may be handed on where `measured`
// was: with tensors what was measured is all there is, statistics show a part.
double HandedOn(const WalkState& state, double explained, double measured);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_UNSEEN_GRADIENT_H_
