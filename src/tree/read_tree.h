// The trees of recordings, read from what lies beside their dump.json files.

#ifndef PLUMBLINE_TREE_READ_TREE_H_
#define PLUMBLINE_TREE_READ_TREE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"
#include "plumbline/result.h"
#include "tree/compare_trees.h"
#include "tree/model_graph.h"
#include "tree/recomputed_layers.h"

namespace plumbline::tree {

// Calls visit(name) for every call that must be in the tree, in recorded order.
using ForEachCall = std::function<void(const std::function<void(std::string_view)>& visit)>;

// What the tree of one recording is made from.
struct TreeSource {
  // What encloses what is said by construct.json in this directory, or by this log of torch's
  // DebugMode; none: nothing does.
  std::optional<std::string> directory;
  // What these say, where somebody read it already; must outlive the call.
  const dump_json::CallTree* known = nullptr;
  ForEachCall calls;
  // What tells layers that ran again: the frames of what stands on the top level.
  std::function<FramesOf(const ModelGraph& graph)> frames;
  bool is_mindspore = false;  // whose frames tell nothing of them
  // Calls that construct.json lacks join groups of APIs, even where it names no module.
  bool groups_lacked = false;
};

struct RecordedTree {
  ModelGraph graph;
  bool has_modules = false;  // construct.json holds some
  uint64_t lacked = 0;       // calls but gradients of parameters that it lacks
};

// Every call has its node: what construct.json lacks stands on the top level, gradients of
// parameters below the backward call of their module, where there are modules. kCorrupt, kIo:
// construct.json, or the log, cannot be read.
Result<RecordedTree> ReadTree(const TreeSource& source);

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
// a note.
ComparedTrees ReadTrees(const Comparison& comparison);

}  // namespace plumbline::tree

#endif  // PLUMBLINE_TREE_READ_TREE_H_
