// The recordings of a parallel run: its ranks, the groups in which they communicate, and what its
// calls have beside tensors.

#ifndef PLUMBLINE_VIEW_UNSHARD_PARALLEL_RUN_H_
#define PLUMBLINE_VIEW_UNSHARD_PARALLEL_RUN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/record.h"
#include "plumbline/result.h"
#include "view/merge/parallel_layout.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

// The ranks of one step, by number. kInvalidArgument: the path holds steps; errors of
// FindRankPairs().
Result<std::vector<load::RankDirectory>> ListRanks(const std::string& path);

// A rank whose tensors are known by their statistics. kUnsupported: by digests alone; errors of
// ReadRankTree().
Result<RankTree> ReadStatistics(const load::RankDirectory& rank, int64_t number);

// Whether all ranks are there, by their numbers and by whom they communicate with.
// kInvalidArgument names the first that is missing. `target`: in the message.
Status CheckAllRanks(const std::string& target, std::span<const RankTree> trees);

// The groups whose ranks summed something up; where a call names none, all ranks.
RankGroups SummingGroups(const std::vector<RankTree>& trees);

// Numbers, texts and places of tensors among the members of a call, as one text that equals that of
// a call with the same ones.
std::string ArgumentsOf(const ValueMap& members);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_PARALLEL_RUN_H_
