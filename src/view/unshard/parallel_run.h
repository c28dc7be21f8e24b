// The recordings of a parallel run: its ranks, the groups in which they communicate, and what its
// calls have beside tensors.

#ifndef PLUMBLINE_VIEW_UNSHARD_PARALLEL_RUN_H_
#define PLUMBLINE_VIEW_UNSHARD_PARALLEL_RUN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/record.h"
#include "plumbline/result.h"
#include "view/merge/parallel_layout.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

// Of dump.json.
inline constexpr std::string_view kTaskOfStatistics = "statistics", kTaskOfTensors = "tensor";

// The ranks of one step, by number. kInvalidArgument: the path holds steps; errors of
// FindRankPairs().
Result<std::vector<load::RankDirectory>> ListRanks(const std::string& path);

// A rank whose tensors are known by their statistics, and maybe by their files. kUnsupported: by
// digests alone; errors of ReadRankTree().
Result<RankTree> ReadStatistics(const load::RankDirectory& rank, int64_t number);

// Where the tensors of golden and of the ranks are.
struct TensorPlaces {
  std::string golden, target;      // directories, absolute
  std::string golden_rank;         // below golden's: that of its files
  std::vector<std::string> ranks;  // below the target's
};
// Nothing where one of them has none. `golden`, `target`: of the runs.
std::optional<TensorPlaces> FindTensors(const std::string& golden, const std::string& target,
                                        std::span<const load::RankDirectory> ranks,
                                        const load::RankDirectory& golden_rank);

// Whether all ranks are there, by their numbers and by whom they communicate with.
// kInvalidArgument names the first that is missing. `target`: in the message.
Status CheckAllRanks(const std::string& target, std::span<const RankTree> trees);

// The groups whose ranks summed something up; where a call names none, all ranks.
RankGroups SummingGroups(const std::vector<RankTree>& trees);

// Numbers, texts and places of tensors among the members of a call, as one text that equals that of
// a call with the same ones.
std::string ArgumentsOf(const ValueMap& members);

// The first of these names, and how many more there are.
std::string Shortened(const std::vector<std::string>& names);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_PARALLEL_RUN_H_
