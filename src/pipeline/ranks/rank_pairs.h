// Which rank of which step of one dump stands against which of the other.

#ifndef PLUMBLINE_PIPELINE_RANKS_RANK_PAIRS_H_
#define PLUMBLINE_PIPELINE_RANKS_RANK_PAIRS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/rank_directories.h"

namespace plumbline::pipeline {

// One rank of one step, on both sides or on one of them.
struct RankPair {
  std::optional<int64_t> step;  // none: the paths given are step directories themselves
  std::optional<load::RankDirectory> target, golden;

  [[nodiscard]] bool paired() const { return target && golden; }
  // "rank 3", "step 2 rank 3"; the directory's name where the number is not known.
  [[nodiscard]] std::string label() const;
  // The number, or nothing for a process that cannot be told from others.
  [[nodiscard]] std::optional<int64_t> rank() const;
};

struct RankFilter {
  std::vector<int64_t> ranks, steps;  // empty: all
};

struct RankPairs {
  std::vector<RankPair> pairs;     // by step, then by rank
  bool has_steps = false;          // the paths are dump directories with step directories
  bool of_graphs = false;          // static-graph dumps (pipeline/graph_pairs.h)
  std::vector<std::string> notes;  // entries left out that look as if they were meant, one sentence
};

// Pairs by number. A rank or step of one side alone is a pair without partner. Two paths that are
// one rank each (directories or dump.json) are a pair; no filter may be given then. kNotFound when
// a side has no rank, or the filter leaves nothing; kInvalidArgument when one side is a step
// directory and the other a dump directory with steps; errors of ListRankDirectories().
Result<RankPairs> FindRankPairs(const std::string& target, const std::string& golden,
                                const RankFilter& filter);

// Whether the two paths are step or dump directories, and one of them holds `at_least` ranks over
// all steps (2: one comparison of two dump.json does not do). False for files, for the directory of
// a rank and for missing paths.
bool HoldRanks(const std::string& target, const std::string& golden, size_t at_least);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RANKS_RANK_PAIRS_H_
