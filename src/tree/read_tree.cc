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
#include "tree/recomputed_layers.h"

namespace plumbline::tree {
namespace {

// The calls of the modules; none where nothing tells them.
dump_json::CallTree CallsBeside(const std::string& dump_path, std::vector<std::string>& notes) {
  const std::string path =
      JoinPath(std::string(DirectoryOf(dump_path)), run_files::kConstructJson);
  if (KindOf(path) != PathKind::kFile) return {};
  Result<dump_json::CallTree> calls = dump_json::ReadCallTree(path);
  if (calls) return std::move(*calls);
  notes.push_back(fmt::format("{}. Calls are shown without their modules",
                              calls.error().message()));
  return {};
}

// Of the calls of one side, as the comparison has them.
using FramesByName = std::unordered_map<std::string_view, const std::vector<std::string>*>;

FramesByName FramesOfSide(const Comparison& comparison, bool of_target) {
  FramesByName frames;
  for (size_t i = 0; i < std::min(comparison.calls.size(), comparison.stacks.size()); ++i) {
    const std::string& name = measure::NameOn(comparison.calls[i], of_target);
    if (!name.empty() && !comparison.stacks[i].empty()) frames[name] = &*comparison.stacks[i];
  }
  return frames;
}

ModelGraph ReadSide(const Comparison& comparison, bool of_target) {
  std::vector<std::string> notes;
  const dump_json::CallTree calls =
      CallsBeside(of_target ? comparison.target_path : comparison.golden_path, notes);
  ModelGraph graph = BuildTree(calls);
  graph.notes.insert(graph.notes.begin(), notes.begin(), notes.end());
  std::vector<std::string> names;
  bool is_mindspore = false;
  for (const ComparedCall& call : comparison.calls) {
    const std::string& name = measure::NameOn(call, of_target);
    if (name.empty()) continue;
    is_mindspore = is_mindspore || name.starts_with("Cell.");
    if (graph.Find(name) == nullptr) names.push_back(name);
  }
  if (!calls.rows.empty()) {
    const FramesByName frames = FramesOfSide(comparison, of_target);
    const FramesOf frames_of = [&](std::string_view name) {
      const auto found = frames.find(name);
      return found == frames.end() ? nullptr : found->second;
    };
    PlaceRecomputedLayers(is_mindspore, frames_of, graph);
    CollectApis(graph);
    AddParameterGradients(names, graph);
  }
  for (const std::string& name : names) graph.Attach(name, graph.root());
  NumberMicroSteps(calls, graph);
  (void)NodesInOrder(graph);
  return graph;
}

}  // namespace

ComparedTrees ReadTrees(const Comparison& comparison) {
  ComparedTrees trees;
  RunBoth([&] { trees.target = ReadSide(comparison, true); },
          [&] { trees.golden = ReadSide(comparison, false); });
  LinkTrees(comparison, trees.target, trees.golden);
  LevelTree(comparison, CallsByNode(comparison, trees.target), trees.target);
  trees.counts = CountNodes(trees.target, trees.golden);
  return trees;
}

}  // namespace plumbline::tree
