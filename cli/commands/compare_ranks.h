// `plumb compare` on directories that hold several ranks or steps.

#ifndef PLUMBLINE_CLI_COMMANDS_COMPARE_RANKS_H_
#define PLUMBLINE_CLI_COMMANDS_COMPARE_RANKS_H_

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/shared_work.h"
#include "match/training_match.h"
#include "plumbline/compare.h"
#include "ranks/rank_shards.h"

namespace plumbline::cli {

// The options of `plumb compare` that concern several ranks.
struct RankArguments {
  std::vector<int64_t> ranks, steps;
  bool no_resume = false;
  bool diff_analyze = false;
  bool check_collectives = false;
  ShareArguments share;
  // Not options of their own: what the paths are.
  bool of_graphs = false;                          // static-graph dumps
  std::optional<match::TrainingRules> training{};  // a training and an inference
};

void AddRankOptions(CLI::App& command, RankArguments& arguments);

// Whether the two paths are to be compared rank by rank: they hold several, or an option of
// RankArguments was given. `by_request`: compare.json names them, where upstream takes any
// directory for that of a step.
bool MeansRanks(const std::string& target, const std::string& golden, bool by_request,
                const RankArguments& arguments);

struct RankRequest {
  std::string target_path, golden_path;
  CompareOptions options;
  std::vector<std::string> fail_on;
  bool machine = false;  // print JSON
};

// Compares, prints the summary and returns the exit status.
Result<int> RunCompareRanks(const RankRequest& request, const RankArguments& arguments);
// With ShareArguments::shard: only that part, for RunMergeShards(). `words`: as of
// RankShardRequest.
Result<int> RunCompareShard(const RankRequest& request, const RankArguments& arguments,
                            const std::vector<std::string>& words);
// As RunCompareRanks() of all parts together.
Result<int> RunMergeShards(ranks::ShardSet shards, const RankRequest& request,
                           const RankArguments& arguments);

// `plumb merge SHARD...`: the same, with the options of the command that the shards are of.
Result<int> MergeComparedShards(ranks::ShardSet shards);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_COMPARE_RANKS_H_
