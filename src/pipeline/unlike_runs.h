// Two recordings that are not two runs of the same program: what to say before anything is judged.

#ifndef PLUMBLINE_PIPELINE_UNLIKE_RUNS_H_
#define PLUMBLINE_PIPELINE_UNLIKE_RUNS_H_

#include "plumbline/compare.h"
#include "plumbline/run.h"

namespace plumbline::pipeline {

// Puts a warning in front of the others for each of these: paths that look swapped, other levels,
// other steps, and calls that hardly pair (other models). Requires: the calls are paired.
void WarnOfUnlikeRuns(const Run& target, const Run& golden, Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_UNLIKE_RUNS_H_
