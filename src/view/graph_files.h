// Files for viewers of graphs, made of recordings: one run as a graph, or two that are compared.

#ifndef PLUMBLINE_VIEW_GRAPH_FILES_H_
#define PLUMBLINE_VIEW_GRAPH_FILES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/result.h"
#include "view/node_stacks.h"

namespace plumbline::view {

enum class GraphFileType : uint8_t { kDb, kVis };

struct GraphFileOptions {
  std::string output_dir = "./output";
  GraphFileType type = GraphFileType::kDb;
  StackForm stacks = StackForm::kFull;
  load::RankFilter filter{};
  bool grades_overflow = false;
  int threads = 0;  // 0: one per core
  // How many ranks are done, of how many; may be empty.
  std::function<void(uint64_t done, uint64_t all)> progress{};
};

struct GraphFileReport {
  std::vector<std::string> files;  // written
  uint64_t nodes = 0, ranks = 0, steps = 0;
  int64_t micro_steps = 0;  // the most of one rank
  uint64_t overflows = 0;   // nodes with a level
  std::vector<std::string> notes;
};

// `path`: the directory of a rank, of ranks or of steps. Writes build_{time}.vis.db into the output
// directory, or build_[step{S}_][rank{R}_]{time}.vis of each rank. Nothing that stands there is
// replaced, and nothing is left of a file that could not be written. Errors: those of
// FindRankPairs() and BuildGraph().
Result<GraphFileReport> WriteGraphFiles(const std::string& path, const GraphFileOptions& options);

// "graph of 240 nodes: 2 ranks, 1 step, 1 micro step".
std::string GraphAnswer(const GraphFileReport& report);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_GRAPH_FILES_H_
