// How many rows a comparison has of each kind.

#ifndef PLUMBLINE_PIPELINE_COUNT_ROWS_H_
#define PLUMBLINE_PIPELINE_COUNT_ROWS_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills the counts of rows and adds to the missing values what no row could judge: values without
// data or of another form on one side, and values that are NaN on both sides, of which a warning
// names the first. NaN in memory that a recorded call left unwritten is none of these: its rows
// become "uninitialised". Requires: the verdicts.
void CountRows(Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_COUNT_ROWS_H_
