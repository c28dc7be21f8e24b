// The verdicts of a comparison of two recordings, put on the nodes of their trees.

#ifndef PLUMBLINE_TREE_COMPARE_TREES_H_
#define PLUMBLINE_TREE_COMPARE_TREES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "plumbline/compare.h"
#include "tree/model_graph.h"

namespace plumbline::tree {

// Nodes of the target by level, and those without counterpart; groups of APIs do not count.
struct NodeCounts {
  std::array<uint64_t, vis::kLevels> levels{};
  uint64_t not_judged = 0;  // matched, and nothing can be said of them
  uint64_t unmatched_target = 0, unmatched_golden = 0;
};

// Of a verdict; nothing: it cannot say.
std::optional<vis::Level> LevelOf(Verdict verdict);
// Of a call:
//
//   verdict of the call                      level
//   same, within noise                       pass
//   suspicious                               warning
//   broken                                   error
//   not comparable, a value being missing    warning; otherwise none
//   another shape, dtype or structure        error; warning where only nulls are missing
std::optional<vis::Level> LevelOf(const Comparison& comparison, const ComparedCall& call);

// Pairs the nodes of both trees: calls as `comparison` pairs them; what it has no values of, or
// calls of another form, by name; groups of APIs by what is in them, wherever they stand. The
// golden nodes take the micro steps of the target's.
void LinkTrees(const Comparison& comparison, ModelGraph& target, ModelGraph& golden);
// The same of recordings of the structure alone: by name.
void LinkTrees(ModelGraph& target, ModelGraph& golden);

// The calls of the comparison that are of one node: mostly one.
struct NodeCalls {
  Node* node;
  std::vector<const ComparedCall*> calls;
};
// Of the paired nodes of the target.
std::vector<NodeCalls> CallsByNode(const Comparison& comparison, const ModelGraph& target);

// Fills the levels of the target's nodes. The first wrong call is an error whatever its verdict; a
// group of APIs has the worst level of those in it. Requires: LinkTrees().
void LevelTree(const Comparison& comparison, ModelGraph& target);

NodeCounts CountNodes(const ModelGraph& target, const ModelGraph& golden);

}  // namespace plumbline::tree

#endif  // PLUMBLINE_TREE_COMPARE_TREES_H_
