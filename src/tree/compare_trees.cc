#include "tree/compare_trees.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/process/parallel.h"
#include "measure/compared_row.h"
#include "verdict/call_rows.h"

namespace plumbline::tree {
namespace {

using vis::Level;

void Link(Node& target, Node& golden) {
  if (target.partner != nullptr || golden.partner != nullptr) return;
  target.partner = &golden;
  golden.partner = &target;
}

void LinkByName(ModelGraph& target, ModelGraph& golden) {
  for (Node& node : target.nodes) {
    if (node.type == NodeType::kCollection || node.partner != nullptr) continue;
    Node* const other = golden.Find(node.name);
    if (other != nullptr) Link(node, *other);
  }
}

// Groups of calls, and groups of the ranks' groups behind these.
std::vector<Node*> GroupsFromBelow(ModelGraph& graph) {
  std::vector<Node*> groups, above;
  for (Node* const top : graph.root().children) {
    if (top->type != NodeType::kCollection) continue;
    const auto is_group = [](const Node* child) { return child->type == NodeType::kCollection; };
    std::ranges::copy_if(top->children, std::back_inserter(groups), is_group);
    above.push_back(top);
  }
  groups.insert(groups.end(), above.begin(), above.end());
  return groups;
}

// A group pairs with the one that most of its calls' counterparts are in, the first of several.
void LinkGroups(ModelGraph& target) {
  for (Node* const group : GroupsFromBelow(target)) {
    std::map<size_t, std::pair<size_t, Node*>> votes;  // by the place of the first counterpart
    std::map<const Node*, size_t> place;
    for (const Node* const call : group->children) {
      if (call->partner == nullptr) continue;
      Node* const other = call->partner->parent;
      if (other == nullptr || other->type != NodeType::kCollection) continue;
      const size_t at = place.emplace(other, place.size()).first->second;
      ++votes[at].first;
      votes[at].second = other;
    }
    Node* best = nullptr;
    size_t most = 0;
    for (const auto& [at, vote] : votes) {
      if (vote.first <= most || vote.second->partner != nullptr) continue;
      most = vote.first;
      best = vote.second;
    }
    if (best != nullptr) Link(*group, *best);
  }
}

void Raise(std::optional<Level> level, Node& node) {
  if (level && (!node.level || *level > *node.level)) node.level = level;
}

void RollUpGroups(ModelGraph& target) {
  for (Node* const group : GroupsFromBelow(target)) {
    for (const Node* const call : group->children) Raise(call->level, *group);
  }
}

void SpreadMicroSteps(ModelGraph& target) {
  for (const Node* const top : target.root().children) {
    Node* const other = top->partner;
    if (other == nullptr || other->parent == nullptr || other->parent->parent != nullptr) continue;
    SetMicroStep(top->micro_step, *other);
  }
}

}  // namespace

std::optional<Level> LevelOf(Verdict verdict) {
  if (measure::IsGood(verdict)) return Level::kPass;
  if (verdict == Verdict::kSuspicious) return Level::kWarning;
  if (verdict == Verdict::kBroken) return Level::kError;
  return std::nullopt;
}

std::optional<Level> LevelOf(const Comparison& comparison, const ComparedCall& call) {
  if (!call.paired()) {
    if (!call.unmatched_reason.ends_with("-differs")) return std::nullopt;
    return call.unmatched_detail.empty() ? Level::kWarning : Level::kError;
  }
  if (const auto level = LevelOf(call.verdict)) return level;
  for (uint32_t i = 0; i < call.row_count; ++i) {
    if (verdict::IsMissingValue(comparison.rows[call.first_row + i])) return Level::kWarning;
  }
  return std::nullopt;
}

void LinkTrees(const Comparison& comparison, ModelGraph& target, ModelGraph& golden) {
  constexpr size_t kBlock = 4096;  // of calls that one thread looks up in one go
  std::vector<std::pair<Node*, Node*>> found(comparison.calls.size());
  ParallelBlocks(found.size(), kBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const ComparedCall& call = comparison.calls[i];
      if (call.paired()) found[i] = {target.Find(call.target_name), golden.Find(call.golden_name)};
    }
  });
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [ours, theirs] = found[i];
    if (ours == nullptr || theirs == nullptr) continue;
    Link(*ours, *theirs);
    // Millions of names are one text for a call and its node.
    ours->name = comparison.calls[i].target_name;
    theirs->name = comparison.calls[i].golden_name;
  }
  LinkTrees(target, golden);
}

void LinkTrees(ModelGraph& target, ModelGraph& golden) {
  LinkByName(target, golden);
  LinkGroups(target);
  SpreadMicroSteps(target);
}

std::vector<NodeCalls> CallsByNode(const Comparison& comparison, const ModelGraph& target) {
  std::vector<NodeCalls> found;
  std::unordered_map<const Node*, size_t> place;
  for (const ComparedCall& call : comparison.calls) {
    Node* const node = call.target_name.empty() ? nullptr : target.Find(call.target_name);
    if (node == nullptr || node->partner == nullptr) continue;
    const auto [at, is_new] = place.emplace(node, found.size());
    if (is_new) found.push_back({node, {}});
    found[at->second].calls.push_back(&call);
  }
  return found;
}

void LevelTree(const Comparison& comparison, ModelGraph& target) {
  for (const ComparedCall& call : comparison.calls) {
    Node* const node = call.target_name.empty() ? nullptr : target.Find(call.target_name);
    if (node != nullptr && node->partner != nullptr) Raise(LevelOf(comparison, call), *node);
  }
  RollUpGroups(target);
  if (!comparison.first_wrong_call) return;
  Node* const first = target.Find(comparison.first_wrong_call->name);
  if (first != nullptr && first->partner != nullptr) Raise(Level::kError, *first);
}

NodeCounts CountNodes(const ModelGraph& target, const ModelGraph& golden) {
  NodeCounts counts;
  const auto counts_as_node = [](const ModelGraph& graph, const Node& node) {
    return &node != &graph.root() && node.type != NodeType::kCollection;
  };
  for (const Node& node : target.nodes) {
    if (!counts_as_node(target, node)) continue;
    if (node.partner == nullptr) {
      ++counts.unmatched_target;
    } else if (node.level) {
      ++counts.levels[static_cast<size_t>(*node.level)];
    } else {
      ++counts.not_judged;
    }
  }
  for (const Node& node : golden.nodes) {
    if (counts_as_node(golden, node) && node.partner == nullptr) ++counts.unmatched_golden;
  }
  return counts;
}

}  // namespace plumbline::tree
