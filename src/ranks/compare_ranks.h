// Compare every rank and step of two dumps: one result set per rank, one answer over all.

#ifndef PLUMBLINE_RANKS_COMPARE_RANKS_H_
#define PLUMBLINE_RANKS_COMPARE_RANKS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "compare/compare_runs.h"
#include "match/training_match.h"
#include "ranks/rank_shards.h"
#include "ranks/rank_summary.h"

namespace plumbline::ranks {

// Looks on while ranks are compared, from several threads; of one rank by one at a time, but for
// `see`. Members may be empty.
struct RankWatch {
  // The ranks that are there, before the first of them is read.
  std::function<void(const RanksReport& report)> begin{};
  // Sees every entry of a rank's recordings as it is read; the sides are read at once.
  std::function<void(size_t rank, const Call& call, bool of_target)> see{};
  // What a person paired of a rank (compare::Pairing::by_hand).
  std::function<match::TextPairs(size_t rank)> by_hand{};
  // A rank, by its index in RanksReport::ranks, that was judged; again where other ranks explain
  // what came from them. An error is that of the rank.
  std::function<Status(size_t rank, const compare::RunPair& pair)> judged{};
  // Set to begin with no further rank; those are kMissing.
  const std::atomic<bool>* is_cancelled = nullptr;
};

struct CompareRanksOptions {
  // Of every rank; suffix, stack_path and on_progress are not used. threads: of all ranks together.
  // output_dir: "" writes nothing and takes nothing over; diff_analyze needs one.
  // noise_path: one run for all, or a step or dump directory with a run for each rank.
  CompareOptions compare;
  load::RankFilter filter;
  // Take over the results of ranks whose inputs, options and result files are as they were when an
  // earlier run wrote them.
  bool resume = true;
  // The paths are static-graph dumps.
  bool of_graphs = false;
  // `target` is a training and `golden` an inference (compare/compare_training.h).
  std::optional<match::TrainingRules> training{};
  // Also write upstream's files of its search for the first difference (diff_analyze.h).
  bool diff_analyze = false;
  // Also check the collectives of each side by themselves (collective_check.h). Not of graphs.
  bool check_collectives = false;
  // Ranks are worked on side by side as long as the estimate of their memory stays below this.
  uint64_t memory_bytes = uint64_t{2} << 30;
  RankWatch watch{};
};

// `target` and `golden`: two step directories (children rank0, rank1, ...) or two dump directories
// (children step0, step1, ... holding ranks), or two static-graph dumps, whose results are called
// compare_result_<rank>_<step>_<time>.*. Results of rank n stand in the output directory as
// compare_result_rankn-rankn_<time>.*, those of step s in its folder step<s>, and the summary as
// compare_ranks_<time>.json. A rank that cannot be read or written is a state of the report and
// stops no other one; its finished files stay.
// So is RanksReport::unwritten, where files over all ranks cannot be written.
// Errors: those of FindRankPairs() and, with `training`, CheckTrainingOptions(); kInvalidArgument
// for check_collectives of graphs; kIo when the output directory cannot be made.
Result<RanksReport> CompareRanks(const std::string& target, const std::string& golden,
                                 const CompareRanksOptions& options);

// The part of one of several processes, which share the output directory: compares its ranks,
// writes their result files, and into ShardPath() what MergeShards() needs. Requires: an output
// directory. The report has all ranks, those of other parts as kMissing, and no answer.
// Errors: those of CompareRanks(), and of the shard file.
Result<RanksReport> CompareShard(const std::string& target, const std::string& golden,
                                 const CompareRanksOptions& options, const ShardPlace& place,
                                 const RankShardRequest& request);

// The report and the files of CompareRanks() of all parts together. Ranks that must be judged again
// behind what other ranks sent are read here. Requires: the options of the parts.
// Errors: those of CompareRanks(); kInvalidArgument where options or recordings have changed since.
Result<RanksReport> MergeShards(ShardSet shards, const CompareRanksOptions& options);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_COMPARE_RANKS_H_
