// The verdicts of a comparison of two recordings, put on the nodes of their graphs.

#ifndef PLUMBLINE_VIEW_COMPARE_GRAPHS_H_
#define PLUMBLINE_VIEW_COMPARE_GRAPHS_H_

#include <array>
#include <cstdint>

#include "plumbline/compare.h"
#include "view/model_graph.h"
#include "view/node_values.h"

namespace plumbline::view {

// Nodes of the target by level, and those without counterpart; groups of APIs do not count.
struct NodeCounts {
  std::array<uint64_t, vis::kLevels> levels{};
  uint64_t not_judged = 0;  // matched, and nothing can be said of them
  uint64_t unmatched_target = 0, unmatched_golden = 0;
};

// Pairs the nodes of both graphs: calls as `comparison` pairs them; what it has no values of, or
// calls of another form, by name; groups of APIs by what is in them, wherever they stand. Then
// fills level and metrics of the target's nodes, and the golden micro steps:
//
//   verdict of the call                      level
//   same, within noise                       pass
//   suspicious                               warning
//   broken, or the first wrong call          error
//   not comparable, a value being missing    warning; otherwise none
//   another shape, dtype or structure        error; warning where only nulls are missing
//
// A group of APIs has the worst level of those in it.
NodeCounts CompareGraphs(const Comparison& comparison, const ValueForm& form, ModelGraph& target,
                         ModelGraph& golden);

// The same of recordings of the structure alone: nodes pair by name, and there are no levels.
NodeCounts PairGraphs(ModelGraph& target, ModelGraph& golden);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_COMPARE_GRAPHS_H_
