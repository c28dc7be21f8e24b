// The verdict of one compared row from its difference and from what is explained.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_ROW_VERDICT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_ROW_VERDICT_H_

#include <span>
#include <string_view>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills expected (relative error), error, reason and verdict of `row`.
void ApplyDifference(const measure::Difference& difference, double expected, ComparedRow& row);

// Of a call from its rows: the worst of its results, not comparable without any.
Verdict WorstOfResults(std::span<const ComparedRow> rows);

// Whether a tensor that a call reads is wrong already. Requires: verdicts of its rows.
bool ReadsWrongTensor(std::span<const ComparedRow> rows);

// Whether `argument` of the paired call `name` with these rows may change what no row shows: the
// running statistics that a normalization writes into its inputs, or all that a call does which
// returns nothing, as `__setitem__`. Equal results prove nothing then.
bool MayActUnseen(const ComparedRow& argument, std::string_view name,
                  std::span<const ComparedRow> rows);

// Whether `row` is a running mean or variance that the paired call `name` with `rows` writes into:
// no result of the call depends on it, only what reads it later.
bool IsRunningStatistic(const ComparedRow& row, std::string_view name,
                        std::span<const ComparedRow> rows);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_ROW_VERDICT_H_
