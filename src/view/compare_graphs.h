// The verdicts of a comparison of two recordings, put on the nodes of their graphs.

#ifndef PLUMBLINE_VIEW_COMPARE_GRAPHS_H_
#define PLUMBLINE_VIEW_COMPARE_GRAPHS_H_

#include "plumbline/compare.h"
#include "tree/compare_trees.h"
#include "view/model_graph.h"
#include "view/node_values.h"

namespace plumbline::view {

using tree::NodeCounts;

// Pairs the nodes of both graphs and fills levels and metrics of the target's
// (tree/compare_trees.h) and the golden micro steps.
NodeCounts CompareGraphs(const Comparison& comparison, const ValueForm& form, ModelGraph& target,
                         ModelGraph& golden);

// The same of recordings of the structure alone: nodes pair by name, and there are no levels.
NodeCounts PairGraphs(ModelGraph& target, ModelGraph& golden);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_COMPARE_GRAPHS_H_
