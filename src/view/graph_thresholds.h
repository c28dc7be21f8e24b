// Limits of a graph that a user may choose: those that no verdict depends on.

#ifndef PLUMBLINE_VIEW_GRAPH_THRESHOLDS_H_
#define PLUMBLINE_VIEW_GRAPH_THRESHOLDS_H_

#include <string>

#include "overflow/overflow_grade.h"
#include "plumbline/result.h"

namespace plumbline::view {

struct GraphThresholds {
  // Key "overflow_norm_ratio": a call whose outputs' largest Norm is more than this many times that
  // of its inputs has the level high; more than 1.
  double overflow_norm_ratio = kLargestNormRatio;
};

// One JSON object with some of the keys. kInvalidArgument: another key, or a value out of range;
// kCorrupt: no JSON; kNotFound, kIo.
Result<GraphThresholds> ReadGraphThresholds(const std::string& path);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_GRAPH_THRESHOLDS_H_
