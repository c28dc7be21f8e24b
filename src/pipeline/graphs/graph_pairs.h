// Which rank and step of one static-graph dump stands against which of the other.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_GRAPH_PAIRS_H_
#define PLUMBLINE_PIPELINE_GRAPHS_GRAPH_PAIRS_H_

#include <string>

#include "pipeline/ranks/rank_pairs.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_GRAPH_PAIRS_H_
