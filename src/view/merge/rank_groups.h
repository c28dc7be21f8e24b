// Which ranks of a recording belong together: as they communicated, otherwise by arithmetic.

#ifndef PLUMBLINE_VIEW_MERGE_RANK_GROUPS_H_
#define PLUMBLINE_VIEW_MERGE_RANK_GROUPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "view/merge/parallel_layout.h"

namespace plumbline::view {

// What the calls of one rank say about its groups.
struct RankHints {
  std::optional<int64_t> next;        // to which rank it sent first
  std::vector<int64_t> tensor_group;  // of its first all_reduce or reduce_scatter; empty: unknown
};
using HintsByRank = std::map<int64_t, RankHints>;

// Reads dump.json in `directory` entry by entry. Errors as of dump_json::VisitDumpFile().
Result<RankHints> ReadHints(const std::string& directory);

// Chains of ranks that sent to each other, from the smallest rank on, each up to a rank that is in
// a chain already or sent nothing: {0: 2, 1: 3, 2: 4, 3: 5, 4: 2, 5: 3} -> {0, 2, 4}, {1, 3, 5}.
RankGroups TraceChains(const HintsByRank& hints);

// All groups of one dimension: those that were recorded, if they have the size that `layout` says
// and every rank is in one of them; otherwise GroupsByArithmetic(), with a note where something
// else was recorded.
Result<RankGroups> GroupsOf(const HintsByRank& hints, const ParallelLayout& layout,
                            ParallelDimension dimension, std::vector<std::string>& notes);

// One merged graph: the pipelines that are folded, each in its order, and then merged with each
// other. Its rank is the first one.
struct MergeJob {
  RankGroups pipelines;
  [[nodiscard]] int64_t rank() const { return pipelines.front().front(); }
  [[nodiscard]] size_t ranks() const;
};

// Every rank stands in one job: a tensor parallel group, a pipeline, a replica of both, or the
// whole run where tp * pp is the number of ranks.
std::vector<MergeJob> JobsOf(const ParallelLayout& layout, const RankGroups& tensor,
                             const RankGroups& pipeline);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_RANK_GROUPS_H_
