// Gradients that the target loses although both sides compute the same forward.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_LOST_GRADIENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_LOST_GRADIENTS_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether golden alone sends a gradient through a forward call that both sides make, as if the
// target had cut the path off; where not `of_target`, the other way round. False for a side without
// any backward call, an inference.
bool CutsAPath(const Comparison& comparison, bool of_target = true);

// Whether the gradients that the recorded backward calls return to each tensor which no recorded
// forward call made add up to the same on both sides, as far as their means tell: a mean is that of
// the sum, however the sum is shared out over calls. Tensors are followed by their contents, and
// count where both sides read them. A formula that is written otherwise may share a gradient out
// otherwise, and loses none. `noise`: largest relative error that counts as noise. True where
// nothing was derived.
bool GiveTheSameToLeaves(const Comparison& comparison, double noise);

// The same as closely as the rounding of the single gradients explains, where every such mean
// stands out of that and some tensor got a gradient on both sides: whatever differs among the
// gradients on the way then reaches no parameter.
bool LeavesAgree(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_LOST_GRADIENTS_H_
