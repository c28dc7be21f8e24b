// Ranks whose newest comparison gave no result: their tables are older, or there are none.

#ifndef PLUMBLINE_PIPELINE_RANKS_LOST_RANKS_H_
#define PLUMBLINE_PIPELINE_RANKS_LOST_RANKS_H_

#include <string>
#include <vector>

#include "pipeline/ranks/merge_inputs.h"

namespace plumbline::pipeline {

struct LostRanks {
  std::vector<std::string> outdated;     // a line for each of the tables that is older
  std::vector<std::string> without_one;  // a line for each rank that has no table
};

// Of the ranks that the newest compare_ranks_<time>.json calls failed or missing. That file is in
// `directory` or, for a directory step<n>, in the one above it. Without one there is nothing to
// say; one that cannot be read is a line of `outdated` itself.
LostRanks FindLostRanks(const std::string& directory, const std::vector<RankTable>& tables);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RANKS_LOST_RANKS_H_
