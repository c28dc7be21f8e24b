// Gradients that one side lacks because it asks for none.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_NEEDLESS_GRADIENT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_NEEDLESS_GRADIENT_H_

#include <cstdint>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether a backward call of the target, whose counterpart has another form, differs from it only
// by gradients that the target lacks and that nothing there asks for: the values that they would
// belong to require no gradient, and neither does anything that leads to them, so that none was
// cut off. What golden asks a gradient of must stand in calls without counterpart (folded
// weights): a parameter of a paired call that golden trains and the target does not is no excuse.
// What both return agrees within `noise`, the largest relative error that counts as noise.
bool LacksOnlyNeedlessGradients(const Comparison& comparison, uint32_t call, double noise);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_NEEDLESS_GRADIENT_H_
