// Where two runs part: verdicts of all rows in recorded order, and the first wrong call.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_DIVERGENCE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_DIVERGENCE_H_

#include <span>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills verdict, reason, error and expected of every row, the verdict of every call, and
// first_wrong_call (docs/design/verdict.md). Requires: rows and calls of `comparison` are filled,
// with metrics and reasons of unmatched calls. `target` supplies stacks and enclosing modules.
// `measured_noise`: empty, or per row the relative error that a third run explains.
void JudgeRows(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise = {});

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_DIVERGENCE_H_
