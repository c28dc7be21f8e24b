// A recording as a tree of modules and the APIs called in them, as a viewer of graphs shows it.

#ifndef PLUMBLINE_TREE_MODEL_GRAPH_H_
#define PLUMBLINE_TREE_MODEL_GRAPH_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory/name_table.h"
#include "formats/json/dump_json.h"
#include "formats/json/vis_record.h"
#include "plumbline/shared_value.h"
#include "record/overflow_level.h"
#include "tree/node_values.h"

namespace plumbline::tree {

using vis::NodeType;

inline constexpr std::string_view kRootName = "DefaultModel";

// By the first part of a name; what no rule knows is a module.
NodeType NodeTypeOf(std::string_view name);

// What files for viewers of graphs show of a node.
struct NodeTexts {
  NodeValues values{};
  std::vector<std::string> metrics{};  // of each parameter: more members of its JSON object
  std::vector<std::string> merge{};    // of several ranks: which and how, a line each
};

// One direction of one call of a module or API, or a group of such.
struct Node {
  Text name;
  Node* parent = nullptr;         // null: the root
  std::vector<Node*> children{};  // in order of recording
  int64_t micro_step = 0;
  size_t order = 0;                    // children before parents, the root last
  size_t stack = 0;                    // of ModelGraph::stacks
  std::unique_ptr<NodeTexts> texts{};  // null: nobody asked for them
  Node* partner = nullptr;             // of the other graph, in a comparison
  std::optional<vis::Level> level{};   // in a comparison
  std::optional<OverflowLevel> overflow{};
  NodeType type = NodeType::kModule;
  bool is_repaired = false;    // it stands below another parent than construct.json says
  bool is_recomputed = false;  // a layer that ran again, moved to where it ran
};
static_assert(sizeof(Node) <= 88, "a long recording has millions");

// The tree and what it was read from. Owns its nodes, which stay where they are. Move-only.
struct ModelGraph {
  ModelGraph() = default;
  // With room for the names of so many nodes.
  explicit ModelGraph(size_t count) : by_name_(count) {}
  ModelGraph(ModelGraph&&) = default;
  ModelGraph& operator=(ModelGraph&&) = default;

  std::deque<Node> nodes;           // the root, then in order of first mention
  std::vector<std::string> stacks;  // JSON lists of frames, each once; the first is empty
  int64_t micro_steps = 1;
  std::vector<std::string> notes;  // what was not as a recorder writes it, one sentence each

  [[nodiscard]] Node& root() { return nodes.front(); }
  [[nodiscard]] const Node& root() const { return nodes.front(); }
  [[nodiscard]] Node* Find(std::string_view name) const;
  // The node of that name, new and without parent if there is none. Shares a Text.
  template <class Name>
  requires std::convertible_to<const Name&, std::string_view> Node& Obtain(const Name& name) {
    Node* const known = Find(name);
    return known != nullptr ? *known : Add(Text(name));
  }
  // The same, as the last child of `parent` unless it has a parent or is `parent` itself.
  template <class Name>
  Node& Attach(const Name& name, Node& parent) {
    Node& node = Obtain(name);
    PutBelow(parent, node);
    return node;
  }
  // Without its nodes.
  void DropNodes();

 private:
  Node& Add(Text name);
  void PutBelow(Node& parent, Node& node);

  NameTable by_name_;  // positions in `nodes`
};

// The tree that construct.json describes, with what recorders get wrong repaired: a backward call
// without parent, or below a sibling whose hook did not fire, goes below the backward call of its
// forward call's parent; parents that are no entries themselves, and circles, go to the top level,
// with a note.
ModelGraph BuildTree(const dump_json::CallTree& calls);

// Whether an entry of that name holds gradients of parameters.
bool IsParameterGradient(std::string_view name);

// Entries of parameter gradients (`names`, of dump.json) that the tree lacks become children of the
// last backward call of their module.
void AddParameterGradients(const std::vector<std::string>& names, ModelGraph& graph);

// Two or more APIs in a row on the top level become one node "Apis_Between_Modules.{k}".
void CollectApis(ModelGraph& graph);

// The micro step of every node, and their number: as counted by the recorder, otherwise a new one
// begins with the first forward module behind a backward one. `calls`: as of BuildTree().
void NumberMicroSteps(const dump_json::CallTree& calls, ModelGraph& graph);

// Of a node and all below it.
void SetMicroStep(int64_t micro_step, Node& top);

// Fills Node::order and returns the nodes in it.
std::vector<Node*> NodesInOrder(ModelGraph& graph);

// The names from the root down to `node`.
std::vector<std::string_view> PathTo(const Node& node);

}  // namespace plumbline::tree

#endif  // PLUMBLINE_TREE_MODEL_GRAPH_H_
