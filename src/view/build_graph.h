// One rank's recording read as a graph.

#ifndef PLUMBLINE_VIEW_BUILD_GRAPH_H_
#define PLUMBLINE_VIEW_BUILD_GRAPH_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "overflow/overflow_grade.h"
#include "plumbline/result.h"
#include "view/model_graph.h"
#include "view/node_stacks.h"
#include "view/node_values.h"
#include "view/rank_links.h"

namespace plumbline::view {

struct BuildOptions {
  ValueForm form{};
  StackForm stacks = StackForm::kFull;
  bool grades_overflow = false;  // fills Node::overflow
  // Takes the entry of a node instead of Node::values and what else is made of it; may be empty.
  std::function<void(Call&& call, const Node& node)> take{};
  double overflow_norm_ratio = kLargestNormRatio;
};

struct RecordedGraph {
  ModelGraph graph;
  std::string task, level, framework;        // of dump.json
  std::optional<std::string> dump_data_dir;  // the directory of its tensors; nothing: none
  bool counts_micro_steps = false;           // construct.json does
  RankCommunication communication{};         // its directory is not filled
};

// What an entry says of the ranks that it was merged from, a line each; none for others.
std::vector<std::string> MergeLinesOf(const Call& call);

// `directory`: that of a rank, with construct.json, dump.json and stack.json. kNotFound: one of
// them is missing; kUnsupported: construct.json names no module; kCorrupt, kIo.
Result<RecordedGraph> BuildGraph(const std::string& directory, const BuildOptions& options);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_BUILD_GRAPH_H_
