// Ranks and steps below a directory, and which of them stand against each other.

#ifndef PLUMBLINE_LOAD_RANK_DIRECTORIES_H_
#define PLUMBLINE_LOAD_RANK_DIRECTORIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

// The step directories of a dump, and the rank directories of one step.

// One process of a step.
struct RankDirectory {
  std::string path;
  std::string name;             // last part of the path: "rank3", "proc812"
  std::optional<int64_t> rank;  // unknown for a process that cannot be told from others
};

// The processes recorded in `step_directory`: entries named rank{R}, rank, proc{pid} and, where two
// processes met in one directory, rank{R}_{pid}. Numbered ranks first in order of number, then the
// rest by name. "rank" is rank 0, as is the only proc{pid} where nothing else is rank 0; names that
// start with a dot and everything else are ignored. Empty when there are none.
// kNotFound, kIo; kInvalidArgument when two directories claim one rank, or one is a symbolic link.
Result<std::vector<RankDirectory>> ListRankDirectories(const std::string& step_directory);

struct StepDirectory {
  std::string path;
  int64_t step = 0;
};

// Directories named step{N} in `dump_directory`, in order of N.
Result<std::vector<StepDirectory>> ListStepDirectories(const std::string& dump_directory);

// Which rank of which step of one dump stands against which of the other.

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
  bool of_graphs = false;          // static-graph dumps (FindGraphPairs)
  std::vector<std::string> notes;  // entries left out that look as if they were meant, one sentence
};

// Pairs by number. A step directory that holds a dump.json and no ranks is its only rank, 0. A rank
// or step of one side alone is a pair without partner. Two paths that are
// one rank each (directories, dump.json or logs of DebugMode) are a pair; no filter may be given
// then. kNotFound when a side has no rank, or the filter leaves nothing; kInvalidArgument when one
// side is a step directory and the other a dump directory with steps; errors of
// ListRankDirectories().
Result<RankPairs> FindRankPairs(const std::string& target, const std::string& golden,
                                const RankFilter& filter);

// Whether the two paths are step or dump directories, and one of them holds `at_least` ranks over
// all steps (2: one comparison of two dump.json does not do). False for files, for the directory of
// a rank and for missing paths.
bool HoldRanks(const std::string& target, const std::string& golden, size_t at_least);

// Which rank and step of one static-graph dump stands against which of the other.

// Pairs by rank and step, in this order. Two paths of one rank and step each are a pair whatever
// their numbers. kInvalidArgument when one of them is no static-graph dump; kNotFound when the
// filter leaves nothing.
Result<RankPairs> FindGraphPairs(const std::string& target, const std::string& golden,
                                 const RankFilter& filter);

// The one pair that the two paths hold, or nothing if they hold several or the filter says
// otherwise.
bool IsSoleGraphPair(const std::string& target, const std::string& golden,
                     const RankFilter& filter);

// "_{rank}_{step}", as upstream has it in the names of the result files. Empty if `path` holds
// several ranks or steps.
std::string GraphSuffix(const std::string& path);

// The directories of that rank and step below `root` as one path; `root` itself if there are none.
std::string GraphPathBelow(const std::string& root, int64_t rank, int64_t step);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_RANK_DIRECTORIES_H_
