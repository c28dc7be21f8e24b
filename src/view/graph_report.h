// What was written into files of graphs, and what a comparison of them says.

#ifndef PLUMBLINE_VIEW_GRAPH_REPORT_H_
#define PLUMBLINE_VIEW_GRAPH_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "view/compare_graphs.h"
#include "view/rank_facts.h"

namespace plumbline::view {

struct GraphFileReport {
  std::vector<std::string> files;  // written
  uint64_t nodes = 0, golden_nodes = 0;
  uint64_t ranks = 0, steps = 0;
  int64_t micro_steps = 0;          // the most of one rank
  uint64_t overflows = 0;           // nodes of the target with a level
  uint64_t reused = 0;              // ranks that an earlier run had finished
  std::vector<RankAnswer> answers;  // of a comparison, by step and rank
  std::vector<std::string> notes;

  [[nodiscard]] NodeCounts counts() const;  // of all ranks
};

// The answer of a comparison as lines; empty of one recording.
std::string ComparisonAnswer(const GraphFileReport& report);

// The answer of a comparison as lines, then what was written: "graph of 240 nodes: 2 ranks, 1 step,
// 1 micro step".
std::string GraphAnswer(const GraphFileReport& report);

// The same for programs: one JSON object (docs/reference/graph.md).
Result<std::string> GraphSummaryJson(const GraphFileReport& report);

// Whether one of `conditions` is met: "error", "warning" (or an error), "unmatched", "unjudged" (a
// rank is not complete), "overflow". kInvalidArgument for other words, and for those of comparisons
// where nothing was compared.
Result<bool> FailsOn(const GraphFileReport& report, const std::vector<std::string>& conditions);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_GRAPH_REPORT_H_
