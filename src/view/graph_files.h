// Files for viewers of graphs, made of recordings: one run as a graph, or two that are compared.

#ifndef PLUMBLINE_VIEW_GRAPH_FILES_H_
#define PLUMBLINE_VIEW_GRAPH_FILES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "load/rank_directories.h"
#include "overflow/overflow_grade.h"
#include "plumbline/compare_options.h"
#include "plumbline/result.h"
#include "view/graph_report.h"
#include "view/node_stacks.h"

namespace plumbline::view {

// Limits of a graph that a user may choose: those that no verdict depends on.
struct GraphThresholds {
  // Key "overflow_norm_ratio": a call whose outputs' largest Norm is more than this many times that
  // of its inputs has the level high; more than 1.
  double overflow_norm_ratio = kLargestNormRatio;
};

// One JSON object with some of the keys. kInvalidArgument: another key, or a value out of range;
// kCorrupt: no JSON; kNotFound, kIo.
Result<GraphThresholds> ReadGraphThresholds(const std::string& path);

enum class GraphFileType : uint8_t { kDb, kVis };

// What the files name as the recordings that they were made of; empty: the paths that were read.
struct SourceNames {
  std::string target, golden;
};

struct GraphFileOptions {
  std::string output_dir = "./output";
  GraphFileType type = GraphFileType::kDb;
  StackForm stacks = StackForm::kFull;
  load::RankFilter filter{};
  bool grades_overflow = false;
  GraphThresholds thresholds{};
  // Ranks that an earlier run with this option finished, or that stand in a result, are taken from
  // there if what they are made of has not changed.
  bool resumes = false;
  // Of a comparison: how calls are paired, noise_path, and threads of all work.
  CompareOptions compare{};
  // Called with every comparison, in order of steps and ranks; may be empty.
  std::function<void(const Comparison& comparison)> compared{};
  SourceNames sources{};
  // How many ranks are done, of how many; may be empty.
  std::function<void(uint64_t done, uint64_t all)> progress{};
};

// `target`: the directory of a rank, of ranks or of steps; `golden`: another one of that kind to
// compare with, or empty. Writes build_{time}.vis.db or compare_{time}.vis.db into the output
// directory, or {build|compare}_[step{S}_][rank{R}_]{time}.vis of each rank. Ranks of one side
// alone are left out, with a note. Calls of the ranks of one step that communicate with each other
// are linked. Nothing that stands there is replaced but links of .vis files that are resumed, and
// nothing is left of a file that could not be written; when resuming, the ranks that were finished
// stay, under hidden names. Errors: those of FindRankPairs(), BuildGraph() and CompareRuns();
// kNotFound when the two sides have no rank in common.
Result<GraphFileReport> WriteGraphFiles(const std::string& target, const std::string& golden,
                                        const GraphFileOptions& options);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_GRAPH_FILES_H_
