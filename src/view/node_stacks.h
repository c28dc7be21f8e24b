// Call stacks of the nodes of a graph.

#ifndef PLUMBLINE_VIEW_NODE_STACKS_H_
#define PLUMBLINE_VIEW_NODE_STACKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "view/model_graph.h"

namespace plumbline::view {

// kShort: the one line that calls the module or API, where it can be told from the others.
enum class StackForm : uint8_t { kFull, kShort, kNone };

// The forward call whose frames a backward call without frames takes: of modules the first call,
// which has them for all. Nothing for other names.
std::optional<std::string> SourceOfFrames(std::string_view name);

// Fills Node::stack and ModelGraph::stacks. A backward call without frames takes those of its
// forward call (of modules: of the first call, which has them for all).
void AddStacks(const dump_json::StackTable& frames, StackForm form, ModelGraph& graph);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_NODE_STACKS_H_
