#include "tree/recomputed_layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text/text_parts.h"
#include "tree/call_twin.h"

namespace plumbline::tree {
namespace {

struct Frame {
  std::string_view file, function;
};

// "File PATH, line N, in FUNCTION, ..."; nothing for lines of another form.
std::optional<Frame> ParseFrame(std::string_view line) {
  line = Trimmed(line);
  if (line.starts_with("File ")) line.remove_prefix(5);
  const size_t file_end = line.find(", line ");
  const size_t function = line.find(", in ");
  if (function == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(function + 5);
  return Frame{Trimmed(line.substr(0, file_end)), Trimmed(rest.substr(0, rest.find(',')))};
}

bool IsBackwardOfCheckpoint(const Frame& frame) {
  return frame.function == "backward" || (frame.function == "checkpoint_function_backward" &&
                                          frame.file.find("megatron") != std::string_view::npos);
}

// A genuine module on the top level is called Module.[{position}.]name.[{position}.]Class.
// forward.{call}; `parts` are those of the name.
bool IsNamedLikeInnerLayer(const std::vector<std::string_view>& parts) {
  if (parts.size() > 7) return true;
  if (parts.size() == 7) return !(IsDigits(parts[1]) && IsDigits(parts[3]));
  return parts.size() == 6 && !IsDigits(parts[1]);
}

// Layers that ran again, by name and in the order of the top level.
std::vector<Node*> RecomputedLayers(bool is_mindspore, const FramesOf& frames_of,
                                    const ModelGraph& graph) {
  std::vector<Node*> layers;
  std::unordered_set<std::string> partners;  // of layers found before
  for (Node* const top : graph.root().children) {
    const auto parts = ParseDirected(top->name);
    if (top->type != NodeType::kModule || !parts) continue;
    if (!is_mindspore) {
      const auto* const frames = frames_of(parts->Turned(kForward));
      if (frames == nullptr || !RunsAgain(*frames)) continue;
    }
    if (partners.contains(top->name)) {
      layers.push_back(top);
      continue;
    }
    std::string partner = parts->Turned(parts->is_forward() ? kBackward : kForward);
    const Node* const other = graph.Find(partner);
    if (other == nullptr || other->parent != &graph.root()) continue;
    if (!IsNamedLikeInnerLayer(SplitAt(top->name, '.'))) continue;
    layers.push_back(top);
    partners.insert(std::move(partner));
  }
  return layers;
}

bool IsAbove(const Node& node, const Node* below) {
  while (below != nullptr && below != &node) below = below->parent;
  return below == &node;
}

}  // namespace

bool RunsAgain(const std::vector<std::string>& frames) {
  std::vector<Frame> parsed;
  for (const std::string& line : frames) {
    if (const auto frame = ParseFrame(line)) parsed.push_back(*frame);
  }
  const auto is_checkpoint = [](const Frame& frame) {
    return frame.function == "recompute_fn" && frame.file.ends_with("torch/utils/checkpoint.py");
  };
  if (std::ranges::any_of(parsed, is_checkpoint)) return true;
  const auto is_autograd = [&](size_t i) {
    return i < parsed.size() && parsed[i].file.ends_with("torch/autograd/function.py");
  };
  for (size_t i = 0; i < parsed.size(); ++i) {
    if (!IsBackwardOfCheckpoint(parsed[i])) continue;
    if (is_autograd(i + 1) || is_autograd(i + 2)) return true;
  }
  return false;
}

void PlaceRecomputedLayers(bool is_mindspore, const FramesOf& frames_of, ModelGraph& graph) {
  const std::vector<Node*> layers = RecomputedLayers(is_mindspore, frames_of, graph);
  if (layers.empty()) return;
  std::unordered_map<std::string_view, std::vector<Node*>> ordinary;  // forward calls by layer
  for (Node* const layer : layers) ordinary[ParseDirected(layer->name)->stem];
  for (Node& node : graph.nodes) {
    const auto parts = ParseDirected(node.name);
    if (!parts || !parts->is_forward() || node.type != NodeType::kModule) continue;
    if (node.parent == nullptr || node.parent == &graph.root()) continue;
    const auto found = ordinary.find(parts->stem);
    if (found != ordinary.end()) found->second.push_back(&node);
  }
  std::map<std::pair<std::string_view, std::string_view>, size_t> used;  // layer and direction
  std::unordered_set<const Node*> moved;
  for (Node* const layer : layers) {
    const auto parts = ParseDirected(layer->name);
    const std::vector<Node*>& calls = ordinary[parts->stem];
    size_t& next = used[{parts->stem, parts->direction}];
    if (next == calls.size()) continue;
    Node* const above = graph.Find(BackwardOf(calls[next++]->parent->name));
    if (above == nullptr || IsAbove(*layer, above)) continue;
    layer->parent = above;
    layer->is_recomputed = true;
    above->children.push_back(layer);
    moved.insert(layer);
  }
  std::erase_if(graph.root().children, [&](const Node* node) { return moved.contains(node); });
}

}  // namespace plumbline::tree
