#include "tree/model_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "tree/call_twin.h"

namespace plumbline::tree {
namespace {

constexpr std::string_view kGradients = ".parameters_grad";
constexpr std::string_view kCollection = "Apis_Between_Modules";

constexpr std::array<std::string_view, 13> kApiPrefixes = {
    "Tensor.",         "Torch.",     "Functional.", "NPU.",       "VF.",
    "Distributed.",    "Aten.",      "Mint.",       "Primitive.", "Jit.",
    "MintFunctional.", "MindSpeed.", "Triton."};

// Names and parents of construct.json, looked up while the tree is built.
using Parents = std::unordered_map<std::string_view, std::string_view>;

// Where a backward call goes whose forward call has `parent`. Empty: nowhere known.
std::string BackwardParent(std::string_view parent, const Parents& parents) {
  std::string turned = BackwardOf(parent);
  return !parent.empty() && parents.contains(turned) ? turned : std::string();
}

std::string_view WithoutLast(std::string_view name, int parts) {
  for (; parts > 0; --parts) {
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return {};
    name = name.substr(0, dot);
  }
  return name;
}

// Whether the module `child` stands below a module of another path than its own.
bool IsMisplaced(std::string_view child, std::string_view parent) {
  const auto parts = [](std::string_view name) { return std::ranges::count(name, '.') + 1; };
  if (parts(child) < 5 || parts(parent) < 4) return false;
  return WithoutLast(child, 4) != WithoutLast(parent, 3);
}

// The parent that an entry shall have; empty: the root.
Text ParentFor(const Text& name, const Text& parent, const Parents& parents) {
  const std::optional<std::string> forward = ForwardOf(name);
  if (!forward) return parent;
  const auto twin = parents.find(*forward);
  if (twin == parents.end()) return parent;
  if (parent.empty()) return BackwardParent(twin->second, parents);
  // A layer that works in place fires no hook of its own, and what follows seems to be inside.
  if (!ParseDirected(name) || !IsMisplaced(name, parent)) return parent;
  if (twin->second.empty()) return {};
  std::string repaired = BackwardParent(twin->second, parents);
  return repaired.empty() ? parent : Text(repaired);
}

void NoteSome(const std::vector<std::string_view>& names, std::string_view what,
              std::vector<std::string>& notes) {
  if (names.empty()) return;
  notes.push_back(fmt::format("construct.json: {} {}, the first of them {}; shown on the top level",
                              CountText(names.size(), "node"), what, names.front()));
}

void MarkBelow(Node& top, std::unordered_set<const Node*>& reached) {
  std::vector<Node*> open = {&top};
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    open.insert(open.end(), node->children.begin(), node->children.end());
  }
}

// No node is met twice on the way down from one that has no parent: every other has one.
size_t CountBelow(const Node& root) {
  size_t count = 0;
  std::vector<const Node*> open = {&root};
  for (; !open.empty(); ++count) {
    const Node* const node = open.back();
    open.pop_back();
    open.insert(open.end(), node->children.begin(), node->children.end());
  }
  return count;
}

// Nodes that are their own ancestors would be reached by nobody.
void BreakCircles(ModelGraph& graph) {
  if (CountBelow(graph.root()) == graph.nodes.size()) return;
  std::unordered_set<const Node*> reached;
  MarkBelow(graph.root(), reached);
  std::vector<std::string_view> broken;
  for (Node& node : graph.nodes) {
    if (reached.contains(&node)) continue;
    std::erase(node.parent->children, &node);
    node.parent = &graph.root();
    graph.root().children.push_back(&node);
    MarkBelow(node, reached);
    broken.push_back(node.name);
  }
  NoteSome(broken, broken.size() == 1 ? "is its own ancestor" : "are their own ancestors",
           graph.notes);
}

// "prefix" and ".parameters_grad" or ".parameters_grad.2"; nothing for other names.
std::optional<std::string_view> ModuleOfGradients(std::string_view name) {
  const size_t at = name.rfind(kGradients);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(at + kGradients.size());
  const bool is_call = rest.size() > 1 && rest.front() == '.' && IsDigits(rest.substr(1));
  return rest.empty() || is_call ? std::optional(name.substr(0, at)) : std::nullopt;
}

}  // namespace

NodeType NodeTypeOf(std::string_view name) {
  if (name.starts_with(kCollection)) return NodeType::kCollection;  // of a merged recording
  const bool is_api = std::ranges::any_of(
      kApiPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
  return is_api ? NodeType::kApi : NodeType::kModule;
}

Node* ModelGraph::Find(std::string_view name) const {
  const auto found = by_name_.Find(name, [&](size_t i) { return std::string_view(nodes[i].name); });
  // The nodes are its own, and whoever has it may change them.
  return found ? const_cast<Node*>(&nodes[*found]) : nullptr;
}

Node& ModelGraph::Add(Text name) {
  Node& node = nodes.emplace_back();
  node.type = NodeTypeOf(name);
  node.name = std::move(name);
  by_name_.Add(nodes.size() - 1, [&](size_t i) { return nodes[i].name.view(); });
  return node;
}

void ModelGraph::DropNodes() {
  nodes = std::deque<Node>();
  by_name_ = {};
}

void ModelGraph::PutBelow(Node& parent, Node& node) {
  if (node.parent != nullptr || &node == &parent || &node == &root()) return;
  node.parent = &parent;
  parent.children.push_back(&node);
}

ModelGraph BuildTree(const dump_json::CallTree& calls) {
  Parents parents;
  parents.reserve(calls.rows.size());
  for (const auto& row : calls.rows) parents.emplace(row.name, row.parent);
  ModelGraph graph(calls.rows.size() + 1);
  graph.Obtain(kRootName);
  std::vector<std::string_view> only_parents;
  for (const auto& row : calls.rows) {
    const Text parent = ParentFor(row.name, row.parent, parents);
    if (parent.empty() || parent == row.name) {
      graph.Attach(row.name, graph.root());
      continue;
    }
    Node& above = graph.Obtain(parent);
    if (!parents.contains(parent) && above.parent == nullptr && &above != &graph.root()) {
      graph.Attach(parent, graph.root());
      only_parents.push_back(above.name);
    }
    graph.Attach(row.name, above).is_repaired = parent != row.parent;
  }
  NoteSome(only_parents,
           only_parents.size() == 1 ? "is no entry itself" : "are no entries themselves",
           graph.notes);
  BreakCircles(graph);
  return graph;
}

bool IsParameterGradient(std::string_view name) { return ModuleOfGradients(name).has_value(); }

void AddParameterGradients(const std::vector<std::string>& names, ModelGraph& graph) {
  std::map<std::string_view, std::vector<std::string_view>> wanted;  // by module
  for (const std::string& name : names) {
    if (graph.Find(name) != nullptr) continue;
    if (const auto module = ModuleOfGradients(name)) wanted[*module].push_back(name);
  }
  if (wanted.empty()) return;
  std::map<std::string_view, std::pair<int64_t, Node*>> last;  // backward call of a module
  for (Node& node : graph.nodes) {
    const auto parts = ParseDirected(node.name);
    if (!parts || parts->is_forward() || !wanted.contains(parts->stem)) continue;
    const int64_t number = ParseNatural(parts->number).value_or(0);
    auto& [highest, holder] = last[parts->stem];
    if (holder == nullptr || number > highest) {
      highest = number;
      holder = &node;
    }
  }
  std::vector<std::string_view> homeless;
  for (const std::string& name : names) {
    const auto module = ModuleOfGradients(name);
    if (!module || graph.Find(name) != nullptr) continue;
    const auto found = last.find(*module);
    Node& holder = found == last.end() ? graph.root() : *found->second.second;
    Node& node = graph.Attach(name, holder);
    if (found == last.end()) homeless.push_back(node.name);
  }
  if (homeless.empty()) return;
  graph.notes.push_back(fmt::format(
      "dump.json: {} whose module has no backward call, the first of them {}; shown on "
      "the top level",
      CountText(homeless.size(), "entry of parameter gradients", "entries of parameter gradients"),
      homeless.front()));
}

void CollectApis(ModelGraph& graph) {
  std::vector<Node*> kept;
  const std::vector<Node*> before = graph.root().children;
  size_t count = 0;
  for (size_t i = 0; i < before.size();) {
    size_t end = i;
    while (end < before.size() && before[end]->type == NodeType::kApi) ++end;
    if (end - i < 2) {
      kept.push_back(before[i++]);
      continue;
    }
    Node& group = graph.Obtain(fmt::format("{}.{}", kCollection, count++));
    group.type = NodeType::kCollection;
    group.parent = &graph.root();
    group.children.assign(before.begin() + static_cast<std::ptrdiff_t>(i),
                          before.begin() + static_cast<std::ptrdiff_t>(end));
    for (Node* const child : group.children) child->parent = &group;
    group.micro_step = group.children.front()->micro_step;
    kept.push_back(&group);
    i = end;
  }
  graph.root().children = std::move(kept);
}

void NumberMicroSteps(const dump_json::CallTree& calls, ModelGraph& graph) {
  if (calls.has_micro_steps) {
    graph.micro_steps = std::max<int64_t>(calls.last_micro_step, 0) + 1;
    for (const auto& row : calls.rows) {
      Node* const node = graph.Find(row.name);
      if (node != nullptr) node->micro_step = std::max<int64_t>(row.micro_step, 0);
    }
    for (Node* const top : graph.root().children) {
      if (top->type == NodeType::kCollection) top->micro_step = top->children.front()->micro_step;
    }
    return;
  }
  int64_t current = 0;
  bool was_backward = false;
  for (Node* const top : graph.root().children) {
    if (top->type == NodeType::kModule) {
      const bool is_forward = top->name.find(".forward.") != std::string::npos;
      if (is_forward && was_backward) ++current;
      was_backward = !is_forward;
    }
    SetMicroStep(current, *top);
  }
  graph.micro_steps = current + 1;
}

void SetMicroStep(int64_t micro_step, Node& top) {
  std::vector<Node*> open = {&top};
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    node->micro_step = micro_step;
    open.insert(open.end(), node->children.begin(), node->children.end());
  }
}

std::vector<Node*> NodesInOrder(ModelGraph& graph) {
  std::vector<Node*> order;
  order.reserve(graph.nodes.size());
  std::vector<std::pair<Node*, size_t>> open = {{&graph.root(), 0}};  // and its next child
  while (!open.empty()) {
    auto& [node, next] = open.back();
    if (next < node->children.size()) {
      Node* const child = node->children[next++];
      open.emplace_back(child, 0);
      continue;
    }
    node->order = order.size();
    order.push_back(node);
    open.pop_back();
  }
  return order;
}

std::vector<std::string_view> PathTo(const Node& node) {
  std::vector<std::string_view> path;
  for (const Node* at = &node; at != nullptr; at = at->parent) path.push_back(at->name);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace plumbline::tree
