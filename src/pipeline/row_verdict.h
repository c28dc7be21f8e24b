// The verdict of one compared row from its difference and from what is explained.

#ifndef PLUMBLINE_PIPELINE_ROW_VERDICT_H_
#define PLUMBLINE_PIPELINE_ROW_VERDICT_H_

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills expected (relative error), error, reason and verdict of `row`.
void ApplyDifference(const measure::Difference& difference, double expected, ComparedRow& row);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_ROW_VERDICT_H_
