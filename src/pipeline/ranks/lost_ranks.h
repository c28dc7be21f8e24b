// Ranks whose newest comparison gave no result, so that the tables in its directory are older.

#ifndef PLUMBLINE_PIPELINE_RANKS_LOST_RANKS_H_
#define PLUMBLINE_PIPELINE_RANKS_LOST_RANKS_H_

#include <string>
#include <vector>

#include "pipeline/ranks/merge_inputs.h"

namespace plumbline::pipeline {

// One warning for each of `tables` whose rank the newest compare_ranks_<time>.json calls failed or
// missing. That file is in `directory` or, for a directory step<n>, in the one above it. Without
// one there is nothing to say; one that cannot be read is a warning itself.
std::vector<std::string> WarningsOfLostRanks(const std::string& directory,
                                             const std::vector<RankTable>& tables);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RANKS_LOST_RANKS_H_
