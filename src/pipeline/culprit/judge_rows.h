// Verdicts of all rows, and the first wrong call.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_JUDGE_ROWS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_JUDGE_ROWS_H_

#include <optional>
#include <span>

#include "measure/verdict.h"
#include "pipeline/culprit/culprit_text.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills verdict, reason, error and expected of every row and the verdict of every call; returns the
// call to name (docs/design/verdict.md). The arguments are those of WalkCalls().
std::optional<CulpritEvent> FindCulprit(const Run& target, const measure::PairContext& context,
                                        Comparison& comparison,
                                        std::span<const double> measured_noise = {});

// Makes the rows as they were before they were judged.
void ForgetVerdicts(std::span<ComparedRow> rows);

// As FindCulprit(), and fills first_wrong_call.
void JudgeRows(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise = {});

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_JUDGE_ROWS_H_
