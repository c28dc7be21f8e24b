#include "view/node_stacks.h"

#include <fmt/format.h>

#include <cctype>
#include <unordered_map>
#include <utility>

#include "base/text/text_parts.h"
#include "tree/call_twin.h"

namespace plumbline::view {
namespace {

using Frames = std::vector<std::string>;

constexpr std::string_view kNoForward =
    "No forward call of this backward call was recorded, so its call stack is not known.";

// Whether a frame enters the dispatch of a recorder: "FunctionalTemplate(", "api_template(".
bool EntersRecorder(std::string_view frame) {
  for (const std::string_view mark : {"Template(", "api_template(", "api_instance("}) {
    const size_t at = frame.find(mark);
    if (at == std::string_view::npos) continue;
    size_t begin = at;
    while (begin > 0 && std::isalpha(static_cast<unsigned char>(frame[begin - 1])) != 0) --begin;
    if (mark.front() != 'T' || std::isupper(static_cast<unsigned char>(frame[begin])) != 0) {
      return true;
    }
  }
  return false;
}

// The frame that calls the node; nothing: none is known to.
const std::string* CallingFrame(std::string_view name, NodeType type, const Frames& frames) {
  if (type == NodeType::kModule) {
    const std::vector<std::string_view> parts = SplitAt(name, '.');
    if (parts.size() < 4) return nullptr;
    const std::string call = fmt::format("{}(", parts[parts.size() - 4]);
    for (const std::string& frame : frames) {
      if (frame.find(call) != std::string::npos) return &frame;
    }
    return nullptr;
  }
  for (size_t i = 0; i + 1 < frames.size(); ++i) {
    if (EntersRecorder(frames[i])) return &frames[i + 1];
  }
  return nullptr;
}

// Renders lists of frames, each once.
class StackTexts {
 public:
  StackTexts(StackForm form, std::vector<std::string>& texts) : form_(form), texts_(texts) {
    texts_.assign(1, "[]");
  }

  size_t Add(const Node& node, const Frames& frames) {
    if (form_ == StackForm::kShort) {
      const std::string* const frame = CallingFrame(node.name, node.type, frames);
      if (frame != nullptr) return AddText(vis::ListJson({*frame}));
    }
    const auto [known, is_new] = by_frames_.emplace(&frames, 0);
    if (is_new) {
      known->second = AddText(vis::ListJson({frames.begin(), frames.end()}));
    }
    return known->second;
  }
  size_t AddText(std::string text) {
    const auto [known, is_new] = by_text_.emplace(std::move(text), texts_.size());
    if (is_new) texts_.push_back(known->first);
    return known->second;
  }

 private:
  const StackForm form_;
  std::vector<std::string>& texts_;
  std::unordered_map<std::string, size_t> by_text_;
  std::unordered_map<const Frames*, size_t> by_frames_;
};

}  // namespace

std::optional<std::string> SourceOfFrames(std::string_view name) {
  const auto parts = tree::ParseDirected(name);
  if (parts && !parts->is_forward()) return parts->Turned(tree::kForward, "0");
  return tree::ForwardOf(name);
}

void AddStacks(const dump_json::StackTable& frames, StackForm form, ModelGraph& graph) {
  StackTexts texts(form, graph.stacks);
  if (form == StackForm::kNone) return;
  for (const auto& [name, stack] : frames) {
    Node* const node = graph.Find(name);
    if (node != nullptr && !stack.empty()) node->stack = texts.Add(*node, *stack);
  }
  for (Node& node : graph.nodes) {
    if (node.stack != 0 || node.type == NodeType::kCollection) continue;
    const auto source = SourceOfFrames(node.name);
    if (!source) continue;
    const Node* const forward = graph.Find(*source);
    node.stack = forward != nullptr ? forward->stack : texts.AddText(vis::ListJson({kNoForward}));
  }
}

}  // namespace plumbline::view
