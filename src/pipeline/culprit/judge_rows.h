// Verdicts of all rows, and the first wrong call.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_JUDGE_ROWS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_JUDGE_ROWS_H_

#include <span>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills verdict, reason, error and expected of every row, the verdict of every call, and
// first_wrong_call (docs/design/verdict.md). The arguments are those of WalkCalls().
void JudgeRows(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise = {});

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_JUDGE_ROWS_H_
