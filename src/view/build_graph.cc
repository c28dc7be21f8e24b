#include "view/build_graph.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "overflow/overflow_grade.h"
#include "record/run_files.h"
#include "tree/recomputed_layers.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kLevelAdvice = "Record with level L0 or mix";

// The three files of a rank.
struct RankFiles {
  std::string construct, dump, stack;
};

Result<RankFiles> FindFiles(const std::string& directory) {
  RankFiles files{JoinPath(directory, run_files::kConstructJson),
                  JoinPath(directory, run_files::kDumpJson),
                  JoinPath(directory, run_files::kStackJson)};
  for (const std::string* path : {&files.construct, &files.dump, &files.stack}) {
    if (KindOf(*path) == PathKind::kFile) continue;
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no such file (expected construct.json, dump.json and stack.json "
                             "of one rank). {}",
                             *path, kLevelAdvice));
  }
  return files;
}

Result<dump_json::CallTree> ReadCalls(const std::string& path) {
  PL_TRY_ASSIGN(dump_json::CallTree calls, dump_json::ReadCallTree(path));
  if (!calls.rows.empty()) return calls;
  return Error(
      ErrorCode::kUnsupported,
      fmt::format("{}: is empty (expected the modules of the model). {}", path, kLevelAdvice));
}

// Entries of dump.json as they are read.
class EntryTaker {
 public:
  EntryTaker(const BuildOptions& options, RecordedGraph& recorded)
      : options_(options), graph_(recorded.graph), communication_(recorded.communication) {}

  void Take(dump_json::VisitedCall&& visited) {
    if (!status_) return;
    if (!visited.problem.empty()) {
      ++unread_;
      return;
    }
    Node* const node = graph_.Find(visited.call.name);
    if (node != nullptr) {
      if (node->type == NodeType::kApi) TakeCommunication(visited.call, communication_);
      status_ = Fill(visited.call, *node);
    } else if (visited.call.kind == CallKind::kParametersGrad) {
      gradient_names_.push_back(visited.call.name);
      gradients_.insert_or_assign(visited.call.name, std::move(visited.call));
    } else {
      ++outside_;
    }
  }

  // The gradients' nodes, and notes on entries without a node.
  Status Finish() {
    PL_TRY(std::move(status_));
    AddParameterGradients(gradient_names_, graph_);
    for (auto& [name, call] : gradients_) PL_TRY(Fill(call, *graph_.Find(name)));
    Note(unread_, "that cannot be read");
    Note(outside_, "that construct.json lacks; not shown");
    return {};
  }

 private:
  Status Fill(Call& call, Node& node) {
    if (options_.take) {
      options_.take(std::move(call), node);
      return {};
    }
    node.texts = std::make_unique<tree::NodeTexts>();
    node.texts->merge = MergeLinesOf(call);
    PL_TRY_ASSIGN(node.texts->values, ValuesOf(call, options_.form));
    if (!options_.grades_overflow) return {};
    const auto grade = GradeOfCall(call, options_.overflow_norm_ratio);
    if (grade) node.overflow = grade->level;
    return {};
  }
  void Note(uint64_t count, std::string_view what) {
    if (count == 0) return;
    graph_.notes.push_back(
        fmt::format("dump.json: {} {}", CountText(count, "entry", "entries"), what));
  }

  const BuildOptions& options_;
  ModelGraph& graph_;
  RankCommunication& communication_;
  Status status_;
  std::vector<std::string> gradient_names_;
  std::unordered_map<std::string, Call> gradients_;
  uint64_t unread_ = 0, outside_ = 0;
};

// A directory that was moved still has its tensors beside it.
Result<std::optional<std::string>> TensorDirectory(const std::string& directory,
                                                   const std::string& recorded) {
  if (recorded.empty()) return std::optional<std::string>();
  PL_TRY_ASSIGN(const std::string own, AbsolutePath(directory));
  if (DirectoryOf(recorded) == own) return std::optional(recorded);
  return std::optional(JoinPath(own, run_files::kTensorDirectory));
}

tree::FramesOf FramesIn(
    const std::unordered_map<std::string_view, const std::vector<std::string>*>& by) {
  return [&by](std::string_view name) -> const std::vector<std::string>* {
    const auto found = by.find(name);
    return found == by.end() ? nullptr : found->second;
  };
}

void PlaceLayers(const dump_json::StackTable& stacks, bool is_mindspore, ModelGraph& graph) {
  std::unordered_map<std::string_view, const std::vector<std::string>*> by_name;
  for (const auto& [name, frames] : stacks) by_name.emplace(name, &*frames);
  tree::PlaceRecomputedLayers(is_mindspore, FramesIn(by_name), graph);
}

}  // namespace

std::vector<std::string> MergeLinesOf(const Call& call) {
  std::vector<std::string> found;
  const Value* const member = call.Find(dump_json::kMergeLines);
  const auto* const lines = member == nullptr ? nullptr : member->As<ValueList>();
  if (lines == nullptr) return found;
  for (const Value& line : *lines) {
    if (const auto* const text = line.As<std::string>()) found.push_back(*text);
  }
  return found;
}

Result<RecordedGraph> BuildGraph(const std::string& directory, const BuildOptions& options) {
  PL_TRY_ASSIGN(const RankFiles files, FindFiles(directory));
  PL_TRY_ASSIGN(const dump_json::CallTree calls, ReadCalls(files.construct));
  RecordedGraph recorded;
  ModelGraph& graph = recorded.graph;
  graph = BuildTree(calls);
  EntryTaker entries(options, recorded);
  PL_TRY_ASSIGN(const dump_json::DumpFile dump,
                dump_json::VisitDumpFile(
                    files.dump, /*salvage=*/false,
                    [&](dump_json::VisitedCall&& visited) { entries.Take(std::move(visited)); }));
  // The calls of one merged recording were those of several ranks.
  if (dump.header.is_merged) recorded.communication = {};
  recorded.task = dump.header.task;
  recorded.level = dump.header.level;
  recorded.counts_micro_steps = calls.has_micro_steps;
  recorded.framework = dump.header.framework.empty() ? "pytorch" : dump.header.framework;
  PL_TRY_ASSIGN(recorded.dump_data_dir, TensorDirectory(directory, dump.header.dump_data_dir));
  PL_TRY_ASSIGN(const dump_json::StackTable stacks, dump_json::ReadStack(files.stack));
  PlaceLayers(stacks, recorded.framework == "mindspore", graph);
  AddStacks(stacks, options.stacks, graph);
  CollectApis(graph);
  PL_TRY(entries.Finish());
  NumberMicroSteps(calls, graph);
  return recorded;
}

}  // namespace plumbline::view
