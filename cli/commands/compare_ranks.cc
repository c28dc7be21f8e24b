#include "commands/compare_ranks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "base/file/file.h"
#include "commands.h"
#include "commands/natural_number.h"
#include "load/rank_directories.h"
#include "ranks/compare_ranks.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

// Ranks that were not compared outweigh what the others say: the answer covers a part only.
Result<int> StatusOf(const ranks::RanksReport& report, const std::vector<std::string>& fail_on) {
  PL_TRY_ASSIGN(const bool fails, FailsOn(report, fail_on));
  for (const ranks::ComparedRank& rank : report.ranks) {
    if (rank.error) return ExitStatus(rank.error->code());
  }
  const bool missing = report.CountOf(ranks::RankState::kMissing) > 0;
  if (missing) return ExitStatus(ErrorCode::kNotFound);
  return fails ? kDifferencesFound : 0;
}

ranks::CompareRanksOptions OptionsOf(const RankRequest& request, const RankArguments& arguments) {
  ranks::CompareRanksOptions options;
  options.compare = request.options;
  options.filter = {arguments.ranks, arguments.steps};
  options.resume = !arguments.no_resume;
  options.diff_analyze = arguments.diff_analyze;
  options.check_collectives = arguments.check_collectives;
  options.of_graphs = arguments.of_graphs;
  options.training = arguments.training;
  return options;
}

Result<int> Answer(const char* command, const ranks::RanksReport& report,
                   const RankRequest& request) {
  std::string text;
  if (request.machine) {
    PL_TRY_ASSIGN(text, ranks::RanksSummaryJson(report));
  } else {
    text = ranks::RanksSummaryText(report);
  }
  Print(text);
  if (report.unwritten) {
    // The file that it names is none that was asked for: no other name was meant.
    PrintError(fmt::format("plumb {}: {}\n", command, report.unwritten->message()));
    return ExitStatus(report.unwritten->code());
  }
  return StatusOf(report, request.fail_on);
}

}  // namespace

void AddRankOptions(CLI::App& command, RankArguments& arguments) {
  command.add_option("--rank", arguments.ranks, "only these ranks, e.g. 0,2")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a path
      ->check(NaturalNumber());
  command.add_option("--step", arguments.steps, "only these steps, e.g. 0,2")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a path
      ->check(NaturalNumber());
  command.add_flag("--diff_analyze", arguments.diff_analyze,
                   "also write upstream's files of the first difference over ranks (also -da)");
  command.add_flag("--check_collectives", arguments.check_collectives,
                   "several ranks: also check in each run that all_reduce gave all ranks the same, "
                   "that messages arrived as sent, ...");
  command.add_flag("--no-resume", arguments.no_resume,
                   "several ranks: compute those again whose results are there and up to date");
  AddShareOptions(command, arguments.share, "several ranks", "compare them as tasks of Ray");
}

bool MeansRanks(const std::string& target, const std::string& golden, bool by_request,
                const RankArguments& arguments) {
  if (arguments.of_graphs) {
    return arguments.diff_analyze || arguments.check_collectives ||
           !load::IsSoleGraphPair(target, golden, {arguments.ranks, arguments.steps});
  }
  if (arguments.diff_analyze || arguments.check_collectives) return true;
  if (!arguments.ranks.empty() || !arguments.steps.empty()) return true;
  return load::HoldRanks(target, golden, by_request ? 1 : 2);
}

Result<int> RunCompareRanks(const RankRequest& request, const RankArguments& arguments) {
  PL_TRY_ASSIGN(
      const ranks::RanksReport report,
      ranks::CompareRanks(request.target_path, request.golden_path, OptionsOf(request, arguments)));
  return Answer("compare", report, request);
}

Result<int> RunCompareShard(const RankRequest& request, const RankArguments& arguments,
                            const std::vector<std::string>& words) {
  PL_TRY_ASSIGN(const ShardPlace place, ParseShardPlace(arguments.share.shard));
  PL_TRY_ASSIGN(const std::string directory, RealPath("."));
  PL_TRY_ASSIGN(
      const ranks::RanksReport report,
      ranks::CompareShard(request.target_path, request.golden_path, OptionsOf(request, arguments),
                          place, {words, directory, arguments.of_graphs}));
  std::string text = fmt::format(
      "shard {} of {}: {} compared, {} taken over, {} failed\n", place.index, place.count,
      report.CountOf(ranks::RankState::kCompared), report.CountOf(ranks::RankState::kTakenOver),
      report.CountOf(ranks::RankState::kFailed));
  int status = 0;
  for (const ranks::ComparedRank& rank : report.ranks) {
    if (!rank.error) continue;
    text += fmt::format("failed: {}: {}\n", rank.pair.label(), rank.error->message());
    // Another attempt may do better; what an input lacks, it lacks then too.
    if (rank.error->code() == ErrorCode::kIo) status = ExitStatus(ErrorCode::kIo);
  }
  text += fmt::format("file: {}\n", ranks::RankShardPath(request.options.output_dir, place));
  Print(text);
  return status;
}

Result<int> RunMergeShards(ranks::ShardSet shards, const RankRequest& request,
                           const RankArguments& arguments) {
  PL_TRY_ASSIGN(const ranks::RanksReport report,
                ranks::MergeShards(std::move(shards), OptionsOf(request, arguments)));
  return Answer("merge", report, request);
}

}  // namespace plumbline::cli
