#include "tree/read_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/text_hash.h"
#include "formats/json/dump_json.h"
#include "formats/pytorch/debug_mode_log.h"
#include "measure/compared_row.h"
#include "record/run_files.h"
#include "tree/call_twin.h"

namespace plumbline::tree {
namespace {

using FramesByName = TextMap<const std::vector<std::string>*>;

// By the stacks of the comparison, of the forward calls of what stands on the top level.
FramesOf FramesOfLayers(const Comparison& comparison, bool of_target, const ModelGraph& graph) {
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
  return [frames = std::move(frames)](std::string_view name) {
    const auto found = frames.find(name);
    return found == frames.end() ? nullptr : found->second;
  };
}

// TreeSource::directory of the recording whose calls are in `main_file`.
std::string PlaceOfModules(const std::string& main_file) {
  return debug_mode::FormOfLog(main_file) ? main_file : std::string(DirectoryOf(main_file));
}

TreeSource SourceOf(const Comparison& comparison, bool of_target) {
  const auto name_of = [&comparison, of_target](size_t i) -> const Text& {
    return measure::NameOn(comparison.calls[i], of_target);
  };
  TreeSource source;
  source.directory = PlaceOfModules(of_target ? comparison.target_path : comparison.golden_path);
  source.calls = [=, count = comparison.calls.size()](const auto& visit) {
    for (size_t i = 0; i < count; ++i) {
      if (!name_of(i).empty()) visit(name_of(i));
    }
  };
  source.frames = [&comparison, of_target](const ModelGraph& graph) {
    return FramesOfLayers(comparison, of_target, graph);
  };
  for (size_t i = 0; i < comparison.calls.size() && !source.is_mindspore; ++i) {
    source.is_mindspore = name_of(i).starts_with("Cell.");
  }
  return source;
}

// One tree, and in it the node of every call.
ModelGraph ReadSide(const Comparison& comparison, bool of_target, std::vector<Node*>& nodes) {
  TreeSource source = SourceOf(comparison, of_target);
  Result<RecordedTree> read = ReadTree(source);
  std::optional<std::string> note;
  if (!read) {
    note = fmt::format("{}. Calls are shown without their modules", read.error().message());
    source.directory.reset();
    read = ReadTree(source);
  }
  ModelGraph graph = std::move(read->graph);
  if (note) graph.notes.insert(graph.notes.begin(), std::move(*note));
  nodes.reserve(comparison.calls.size());
  for (const ComparedCall& call : comparison.calls) {
    nodes.push_back(graph.Find(measure::NameOn(call, of_target)));
  }
  (void)NodesInOrder(graph);
  return graph;
}

// Of a log, without what its calls hold. Empty where it names no module.
Result<dump_json::CallTree> CallTreeOfLog(const std::string& path) {
  const auto drop = [](Call&, const RunHeader&) { return false; };
  PL_TRY_ASSIGN(debug_mode::LogFile log, debug_mode::ReadLog(path, /*salvage=*/true, drop));
  return log.tree.has_parents() ? std::move(log.tree) : dump_json::CallTree();
}

Result<dump_json::CallTree> CallTreeAt(const std::string& place) {
  if (KindOf(place) == PathKind::kFile) return CallTreeOfLog(place);
  const std::string path = JoinPath(place, run_files::kConstructJson);
  if (KindOf(path) == PathKind::kFile) return dump_json::ReadCallTree(path);
  return dump_json::CallTree();
}

}  // namespace

Result<RecordedTree> ReadTree(const TreeSource& source) {
  dump_json::CallTree read;
  if (source.known == nullptr && source.directory) {
    PL_TRY_ASSIGN(read, CallTreeAt(*source.directory));
  }
  const dump_json::CallTree& calls = source.known != nullptr ? *source.known : read;
  RecordedTree tree{BuildTree(calls), !calls.rows.empty()};
  ModelGraph& graph = tree.graph;
  if (!calls.has_micro_steps) read.rows = {};  // as large as the tree itself
  const bool is_arranged = tree.has_modules || source.groups_lacked;
  std::vector<std::string> lacked, gradients;
  source.calls([&](std::string_view name) {
    if (graph.Find(name) != nullptr) return;
    (is_arranged && IsParameterGradient(name) ? gradients : lacked).emplace_back(name);
  });
  tree.lacked = lacked.size();
  const auto attach = [&] {
    for (const std::string& name : lacked) graph.Attach(name, graph.root());
  };
  if (source.groups_lacked) attach();
  if (is_arranged) {
    PlaceRecomputedLayers(source.is_mindspore, source.frames(graph), graph);
    CollectApis(graph);
    AddParameterGradients(gradients, graph);
  }
  if (!source.groups_lacked) attach();
  NumberMicroSteps(calls, graph);
  return tree;
}

ComparedTrees ReadTrees(const Comparison& comparison) {
  ComparedTrees trees;
  std::vector<Node*> target, golden;
  RunBoth([&] { trees.target = ReadSide(comparison, true, target); },
          [&] { trees.golden = ReadSide(comparison, false, golden); });
  trees.calls.reserve(target.size());
  for (size_t i = 0; i < target.size(); ++i) trees.calls.push_back({target[i], golden[i]});
  LinkTrees(comparison, trees.target, trees.golden);
  LevelTree(comparison, trees.target);
  trees.counts = CountNodes(trees.target, trees.golden);
  return trees;
}

}  // namespace plumbline::tree
