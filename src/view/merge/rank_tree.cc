#include "view/merge/rank_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "view/build_graph.h"

namespace plumbline::view {

Part* RankTree::Find(std::string_view name) const {
  const auto found = by_name.find(std::string(name));
  return found == by_name.end() ? nullptr : found->second;
}

void RankTree::Index() {
  by_name.clear();
  for (Part* const part : PartsBelow(root())) by_name.emplace(part->name, part);
}

Result<RankTree> ReadRankTree(const std::string& directory, int64_t rank) {
  std::unordered_map<const Node*, ValueMap> members;
  BuildOptions options;
  options.take = [&members](Call&& call, const Node& node) {
    members.insert_or_assign(&node, std::move(call.members));
  };
  PL_TRY_ASSIGN(RecordedGraph recorded, BuildGraph(directory, options));
  RankTree tree;
  tree.rank = rank;
  tree.task = std::move(recorded.task);
  tree.level = std::move(recorded.level);
  tree.framework = std::move(recorded.framework);
  tree.counts_micro_steps = recorded.counts_micro_steps;
  tree.micro_steps = recorded.graph.micro_steps;
  tree.stacks = std::move(recorded.graph.stacks);
  tree.notes = std::move(recorded.graph.notes);
  std::unordered_map<const Node*, Part*> part_of;
  for (const Node& node : recorded.graph.nodes) {
    Part& part = tree.parts.emplace_back();
    part.name = node.name;
    part.type = node.type;
    part.rank = rank;
    part.micro_step = node.micro_step;
    if (node.stack != 0) part.frames = tree.stacks[node.stack];
    const auto found = members.find(&node);
    if (found != members.end()) part.members = std::move(found->second);
    part_of.emplace(&node, &part);
  }
  for (const Node& node : recorded.graph.nodes) {
    Part& part = *part_of.at(&node);
    for (const Node* const child : node.children) {
      part.children.push_back(part_of.at(child));
      part.children.back()->parent = &part;
    }
  }
  tree.Index();
  return tree;
}

std::vector<Part*> PartsBelow(Part& top) {
  std::vector<Part*> found, open = {&top};
  while (!open.empty()) {
    Part* const part = open.back();
    open.pop_back();
    found.push_back(part);
    open.insert(open.end(), part->children.rbegin(), part->children.rend());
  }
  return found;
}

void AttachAt(Part& part, Part& parent, size_t place) {
  part.parent = &parent;
  parent.children.insert(parent.children.begin() + static_cast<std::ptrdiff_t>(place), &part);
}

bool HaveSameAncestors(const Part& a, const Part& b) {
  const Part* x = a.parent;
  const Part* y = b.parent;
  for (; x != nullptr && y != nullptr; x = x->parent, y = y->parent) {
    if (x->name != y->name) return false;
  }
  return x == y;  // both null
}

CommCall CommunicationOf(const Part& part, std::string_view api, std::vector<CommGroup>& groups) {
  Call call;
  call.name = part.name;
  call.members = part.members;
  return ReadCommCall(call, api, groups);
}

std::string WithRankMark(std::string_view api_name, int64_t rank) {
  const size_t first = api_name.find('.');
  if (first == std::string_view::npos) return std::string(api_name);
  const size_t second = std::min(api_name.find('.', first + 1), api_name.size());
  return fmt::format("{}_rank{}{}", api_name.substr(0, second), rank, api_name.substr(second));
}

}  // namespace plumbline::view
