// Gradients that one side loses, need not compute, or computes to the same sum in another order.

#ifndef PLUMBLINE_VERDICT_MISSED_GRADIENTS_H_
#define PLUMBLINE_VERDICT_MISSED_GRADIENTS_H_

#include <cstdint>

#include "plumbline/compare.h"

namespace plumbline::verdict {

// Gradients that the target loses although both sides compute the same forward.

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

// Gradients that one side lacks because it asks for none.

// Whether a backward call of the target, whose counterpart has another form, differs from it only
// by gradients that the target lacks and that nothing there asks for: the values that they would
// belong to require no gradient, and neither does anything that leads to them, so that none was
// cut off. What golden asks a gradient of must stand in calls without counterpart (folded
// weights): a parameter of a paired call that golden trains and the target does not is no excuse.
// What both return agrees within `noise`, the largest relative error that counts as noise.
bool LacksOnlyNeedlessGradients(const Comparison& comparison, uint32_t call, double noise);

// Gradients of symmetric matrices, which formulas that agree on such matrices need not share.

// Whether a row of a backward call holds gradients that differ in their antisymmetric part alone,
// of a value that is a symmetric matrix on both sides (the last two axes count), though no diagonal
// one: symmetric because of how it was made. Of the directions in which such a value can move, the
// antisymmetric part of a gradient says nothing: `solve(S, B)` and `B^T inv(S)` have other
// gradients that mean the same. `noise`: largest relative error that counts as noise. False where
// the tensors were not recorded or cannot be read.
bool MeansTheSameForSymmetricValue(const Comparison& comparison, const ComparedRow& row,
                                   double noise);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_MISSED_GRADIENTS_H_
