// The step directories of a dump, and the rank directories of one step.

#ifndef PLUMBLINE_LOAD_RANK_DIRECTORIES_H_
#define PLUMBLINE_LOAD_RANK_DIRECTORIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

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

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_RANK_DIRECTORIES_H_
