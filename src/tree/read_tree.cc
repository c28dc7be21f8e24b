#include "tree/read_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "formats/json/dump_json.h"
#include "measure/compared_row.h"
#include "record/run_files.h"
#include "tree/call_twin.h"
#include "tree/recomputed_layers.h"

namespace plumbline::tree {
namespace {

// The calls of the modules; none where nothing tells them.
dump_json::CallTree CallsBeside(const std::string& dump_path, std::vector<std::string>& notes) {
  const std::string path = JoinPath(std::string(DirectoryOf(dump_path)), run_files::kConstructJson);
  if (KindOf(path) != PathKind::kFile) return {};
  Result<dump_json::CallTree> calls = dump_json::ReadCallTree(path);
  if (calls) return std::move(*calls);
  notes.push_back(
      fmt::format("{}. Calls are shown without their modules", calls.error().message()));
  return {};
}

using FramesByName = std::unordered_map<std::string, const std::vector<std::string>*>;

// Those that tell which layers on the top level ran again: of their forward calls.
FramesByName FramesOfLayers(const Comparison& comparison, bool of_target, const ModelGraph& graph) {
  FramesByName frames;
  for (const Node* const top : graph.root().children) {
    const auto parts = ParseDirected(top->name);
    if (parts && top->type == NodeType::kModule) frames[parts->Turned(kForward)] = nullptr;
  }
  for (size_t i = 0; i < std::min(comparison.calls.size(), comparison.stacks.size()); ++i) {
    if (comparison.stacks[i].empty()) continue;
    const auto found = frames.find(measure::NameOn(comparison.calls[i], of_target));
    if (found != frames.end()) found->second = &*comparison.stacks[i];
  }
  return frames;
}

// What a viewer shows otherwise than construct.json has it.
void Arrange(const Comparison& comparison, bool of_target, const std::vector<std::string>& names,
             ModelGraph& graph) {
  const bool is_mindspore = std::ranges::any_of(comparison.calls, [&](const ComparedCall& call) {
    return measure::NameOn(call, of_target).starts_with("Cell.");
  });
  const FramesByName frames = FramesOfLayers(comparison, of_target, graph);
  const FramesOf frames_of = [&](std::string_view name) {
    const auto found = frames.find(std::string(name));
    return found == frames.end() ? nullptr : found->second;
  };
  PlaceRecomputedLayers(is_mindspore, frames_of, graph);
  CollectApis(graph);
  AddParameterGradients(names, graph);
}

// One tree, and in it the node of every call.
ModelGraph ReadSide(const Comparison& comparison, bool of_target, std::vector<Node*>& nodes) {
  std::vector<std::string> notes;
  const dump_json::CallTree calls =
      CallsBeside(of_target ? comparison.target_path : comparison.golden_path, notes);
  ModelGraph graph = BuildTree(calls);
  graph.notes.insert(graph.notes.begin(), notes.begin(), notes.end());
  std::vector<std::string> names;  // that construct.json lacks
  nodes.assign(comparison.calls.size(), nullptr);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::string& name = measure::NameOn(comparison.calls[i], of_target);
    if (name.empty()) continue;
    nodes[i] = graph.Find(name);
    if (nodes[i] == nullptr) names.push_back(name);
  }
  if (!calls.rows.empty()) Arrange(comparison, of_target, names, graph);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::string& name = measure::NameOn(comparison.calls[i], of_target);
    if (nodes[i] == nullptr && !name.empty()) nodes[i] = &graph.Attach(name, graph.root());
  }
  NumberMicroSteps(calls, graph);
  (void)NodesInOrder(graph);
  return graph;
}

}  // namespace

ComparedTrees ReadTrees(const Comparison& comparison) {
  ComparedTrees trees;
  std::vector<Node*> target, golden;
  RunBoth([&] { trees.target = ReadSide(comparison, true, target); },
          [&] { trees.golden = ReadSide(comparison, false, golden); });
  trees.calls.reserve(target.size());
  for (size_t i = 0; i < target.size(); ++i) trees.calls.push_back({target[i], golden[i]});
  LinkTrees(comparison, trees.target, trees.golden);
  LevelTree(comparison, CallsByNode(comparison, trees.target), trees.target);
  trees.counts = CountNodes(trees.target, trees.golden);
  return trees;
}

}  // namespace plumbline::tree
