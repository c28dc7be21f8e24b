// CompareRuns() (plumbline/compare.h) for callers that need the run as well as the rows.

#ifndef PLUMBLINE_PIPELINE_COMPARE_RUNS_H_
#define PLUMBLINE_PIPELINE_COMPARE_RUNS_H_

#include <functional>
#include <string>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Sees the finished comparison while the target's run is still open. The run holds the names of all
// calls, and the arguments only of those that communicate.
using ComparisonVisitor = std::function<void(const Run& target, const Comparison& comparison)>;

// As CompareRuns(); `visit` may be empty.
Result<Comparison> CompareRunsVisited(const std::string& target, const std::string& golden,
                                      const CompareOptions& options,
                                      const ComparisonVisitor& visit);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_COMPARE_RUNS_H_
