// The trees of two compared recordings, read from what lies beside their dump.json files.

#ifndef PLUMBLINE_TREE_READ_TREE_H_
#define PLUMBLINE_TREE_READ_TREE_H_

#include <vector>

#include "plumbline/compare.h"
#include "tree/compare_trees.h"
#include "tree/model_graph.h"

namespace plumbline::tree {

// The nodes of one call; null: that side has none.
struct CallNodes {
  Node* target = nullptr;
  Node* golden = nullptr;
};

// Both trees of a comparison, paired, with levels.
struct ComparedTrees {
  ModelGraph target, golden;
  std::vector<CallNodes> calls;  // by number of the call
  NodeCounts counts;
};

// Every call of `comparison` has its node. Where construct.json is missing, names no module or
// cannot be read, all calls stand on the top level in recorded order; a file that cannot be read is
// a note. Layers that ran again are told by the stacks of the comparison.
ComparedTrees ReadTrees(const Comparison& comparison);

}  // namespace plumbline::tree

#endif  // PLUMBLINE_TREE_READ_TREE_H_
