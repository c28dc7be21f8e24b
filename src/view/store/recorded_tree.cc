#include "view/store/recorded_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "record/run_files.h"
#include "tree/recomputed_layers.h"
#include "view/node_stacks.h"

namespace plumbline::view {
namespace {

const std::vector<std::string>* OwnFrames(const Run& run, std::string_view name) {
  const Shared<std::vector<std::string>>& frames = run.StackOf(name);
  return frames.empty() ? nullptr : &*frames;
}

Result<dump_json::CallTree> ReadCallTreeOf(const Run& run, std::vector<std::string>& notes) {
  const std::string path = JoinPath(DirectoryOf(run.dump_json_path()), run_files::kConstructJson);
  if (run.header().of_graphs || run.header().holds_saves()) return dump_json::CallTree();
  dump_json::CallTree calls;
  if (KindOf(path) == PathKind::kFile) {
    PL_TRY_ASSIGN(calls, dump_json::ReadCallTree(path));
  }
  if (calls.rows.empty()) {
    notes.push_back(
        fmt::format("{}: no modules; calls are shown as a list. Record with level L0 "
                    "or mix to see the model",
                    path));
  }
  return calls;
}

}  // namespace

Result<ModelGraph> ReadTree(const Run& run, const ForEachCall& calls,
                            const std::vector<std::string>& gradients) {
  std::vector<std::string> notes;
  PL_TRY_ASSIGN(dump_json::CallTree tree, ReadCallTreeOf(run, notes));
  const bool has_modules = !tree.rows.empty();
  ModelGraph graph = BuildTree(tree);
  if (!tree.has_micro_steps) tree.rows = {};  // as large as the tree itself
  const std::unordered_set<std::string_view> later(gradients.begin(), gradients.end());
  uint64_t added = 0;
  calls([&](std::string_view name) {
    if (later.contains(name) || graph.Find(name) != nullptr) return;
    graph.Attach(name, graph.root());
    ++added;
  });
  if (has_modules && added > 0) {
    notes.push_back(fmt::format("dump.json: {} that construct.json lacks; shown on the top level",
                                CountText(added, "call")));
  }
  const tree::FramesOf frames_of = [&](std::string_view name) { return OwnFrames(run, name); };
  tree::PlaceRecomputedLayers(run.header().framework == "mindspore", frames_of, graph);
  CollectApis(graph);
  AddParameterGradients(gradients, graph);
  NumberMicroSteps(tree, graph);
  std::ranges::move(notes, std::back_inserter(graph.notes));
  return graph;
}

const std::vector<std::string>* FramesOfNode(const Run& run, const std::string& name) {
  if (const auto* frames = OwnFrames(run, name)) return frames;
  const auto source = SourceOfFrames(name);
  return source ? OwnFrames(run, *source) : nullptr;
}

}  // namespace plumbline::view
