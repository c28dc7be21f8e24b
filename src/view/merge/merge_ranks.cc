#include "view/merge/merge_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/text_parts.h"
#include "view/merge/fold_pipeline.h"
#include "view/merge/fold_tensors.h"
#include "view/merge/merged_dump.h"
#include "view/merge/merged_values.h"
#include "view/merge/partial_sums.h"
#include "view/merge/rank_groups.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kStatistics = "statistics", kTensors = "tensor";

// The ranks of one step, by number.
struct RanksOfStep {
  int64_t step = 0;
  std::map<int64_t, std::string> directories;
};

Result<std::vector<RanksOfStep>> FindSteps(const MergeRequest& request,
                                           std::vector<std::string>& notes) {
  PL_TRY_ASSIGN(const load::RankPairs found,
                load::FindRankPairs(request.source, request.source, request.filter));
  const std::set<std::string> seen(found.notes.begin(), found.notes.end());
  notes.insert(notes.end(), seen.begin(), seen.end());
  // A directory of ranks may be that of one step.
  const auto own_step = NaturalAfter("step", BaseName(request.source));
  std::map<int64_t, RanksOfStep> steps;
  for (const load::RankPair& pair : found.pairs) {
    const int64_t number = pair.step ? *pair.step : request.step_as.value_or(own_step.value_or(0));
    if (!pair.rank() && found.pairs.size() > 1) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: its name says no rank, and there are others (expected "
                               "rank{{R}})",
                               pair.target->path));
    }
    RanksOfStep& step = steps[number];
    step.step = number;
    step.directories.emplace(pair.rank().value_or(0), pair.target->path);
  }
  std::vector<RanksOfStep> list;
  for (auto& [number, step] : steps) list.push_back(std::move(step));
  return list;
}

// Arithmetic and the calls count ranks from 0.
Status CheckNumbers(const MergeRequest& request, const RanksOfStep& step) {
  int64_t expected = 0;
  for (const auto& [rank, directory] : step.directories) {
    if (rank == expected++) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: rank {} is missing (merging needs all ranks from 0 on)",
                             request.source, expected - 1));
  }
  return {};
}

Status CheckStep(const MergeRequest& request, const RanksOfStep& step) {
  PL_TRY(CheckLayout(request.layout, step.directories.size(), request.side));
  return CheckNumbers(request, step);
}

// What the ranks of one graph are while they are folded.
using Trees = std::vector<RankTree>;

class StepMerger {
 public:
  StepMerger(const MergeRequest& request, const RanksOfStep& step, MergeReport& report)
      : request_(request), step_(step), report_(report) {}

  Status Run(const std::function<void(uint64_t ranks)>& done) {
    PL_TRY_ASSIGN(const HintsByRank hints, ReadAllHints());
    std::vector<std::string> notes;
    PL_TRY_ASSIGN(tensor_, GroupsOf(hints, request_.layout, ParallelDimension::kTensor, notes));
    PL_TRY_ASSIGN(const RankGroups pipeline,
                  GroupsOf(hints, request_.layout, ParallelDimension::kPipeline, notes));
    for (const std::string& note : notes) Note(note);
    std::vector<MergeJob> jobs = JobsOf(request_.layout, tensor_, pipeline);
    std::ranges::sort(jobs, {}, &MergeJob::rank);
    const size_t before = report_.dumps.size();
    for (const MergeJob& job : jobs) {
      PL_TRY(Merge(job, NumberOf(report_.dumps.size() - before, job)));
      done(job.ranks());
    }
    return {};
  }

 private:
  void Note(const std::string& note) {
    std::string text = fmt::format("{}: {}", request_.side, note);
    if (std::ranges::find(report_.notes, text) == report_.notes.end()) {
      report_.notes.push_back(std::move(text));
    }
  }

  Result<HintsByRank> ReadAllHints() const {
    std::vector<std::pair<int64_t, std::string>> ranks(step_.directories.begin(),
                                                       step_.directories.end());
    HintsByRank hints;
    if (request_.layout.is_single()) {
      hints.try_emplace(ranks.front().first);
      return hints;
    }
    std::vector<std::optional<Result<RankHints>>> read(ranks.size());
    ParallelFor(ranks.size(), [&](size_t i) { read[i] = ReadHints(ranks[i].second); });
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (!*read[i]) return read[i]->error();
      hints.emplace(ranks[i].first, std::move(**read[i]));
    }
    return hints;
  }

  // In order of rank.
  Result<Trees> ReadTrees(const MergeJob& job) const {
    std::vector<int64_t> ranks;
    for (const auto& pipeline : job.pipelines)
      ranks.insert(ranks.end(), pipeline.begin(), pipeline.end());
    std::ranges::sort(ranks);
    std::vector<std::optional<Result<RankTree>>> read(ranks.size());
    ParallelFor(ranks.size(), [&](size_t i) {
      read[i] = ReadRankTree(step_.directories.at(ranks[i]), ranks[i]);
    });
    Trees trees;
    for (auto& each : read) {
      if (!*each) return each->error();
      trees.push_back(std::move(**each));
    }
    return trees;
  }

  // As which rank the merged recording is written.
  [[nodiscard]] int64_t NumberOf(size_t place, const MergeJob& job) const {
    const auto found = request_.ranks_as.find(step_.step);
    if (found == request_.ranks_as.end() || place >= found->second.size()) return job.rank();
    return found->second[place];
  }

  Status Merge(const MergeJob& job, int64_t number) {
    PL_TRY_ASSIGN(Trees trees, ReadTrees(job));
    PL_TRY(CheckTask(trees));
    std::map<int64_t, RankTree*> by_rank;
    for (RankTree& tree : trees) {
      by_rank.emplace(tree.rank, &tree);
      report_.source_nodes += tree.parts.size() - 1;
      ++report_.source_ranks;
      for (const std::string& note : tree.notes) Note(fmt::format("rank {}: {}", tree.rank, note));
      tree.notes.clear();
    }
    std::vector<RankTree*> all = {by_rank.at(job.rank())};  // the one that gets the others first
    for (const auto& [rank, tree] : by_rank) {
      if (rank != job.rank()) all.push_back(tree);
    }
    const PartialSums sums(trees, tensor_);
    FoldLooseCalls(all);
    std::vector<RankTree*> leaders;
    for (const auto& pipeline : job.pipelines) {
      std::vector<RankTree*> stages;
      for (const int64_t rank : pipeline) stages.push_back(by_rank.at(rank));
      FoldPipeline(stages, request_.layout.chunks);
      leaders.push_back(stages.front());
    }
    FoldTensors(leaders, tensor_, sums);
    RankTree& main = *leaders.front();
    for (const std::string& note : main.notes) Note(note);
    return Write(job, number, main);
  }

  Status CheckTask(Trees& trees) {
    for (RankTree& tree : trees) {
      if (tree.task != kStatistics && tree.task != kTensors) {
        return Error(ErrorCode::kUnsupported,
                     fmt::format("{}: task {} has no statistics to merge (expected statistics or "
                                 "tensor)",
                                 step_.directories.at(tree.rank), tree.task));
      }
      if (tree.task == kTensors) {
        Note(
            "statistics alone were merged: recorded tensors and digests are those of single ranks");
      }
      tree.task = kStatistics;
    }
    return {};
  }

  Status Write(const MergeJob& job, int64_t number, RankTree& tree) {
    MergedDump dump{step_.step, number, job.ranks(), "", 0};
    dump.directory =
        JoinPath(request_.output_dir, fmt::format("step{}/rank{}", step_.step, number));
    PL_TRY_ASSIGN(dump.nodes, WriteMergedDump(tree, dump.directory));
    report_.dumps.push_back(std::move(dump));
    return {};
  }

  const MergeRequest& request_;
  const RanksOfStep& step_;
  MergeReport& report_;
  RankGroups tensor_;
};

}  // namespace

Status CheckRanks(const MergeRequest& request) {
  std::vector<std::string> notes;
  PL_TRY_ASSIGN(const std::vector<RanksOfStep> steps, FindSteps(request, notes));
  for (const RanksOfStep& step : steps) PL_TRY(CheckStep(request, step));
  return {};
}

Result<MergeReport> MergeRanks(const MergeRequest& request) {
  MergeReport report;
  PL_TRY_ASSIGN(const std::vector<RanksOfStep> steps, FindSteps(request, report.notes));
  uint64_t all = 0, finished = 0;
  for (const RanksOfStep& step : steps) all += step.directories.size();
  for (const RanksOfStep& step : steps) PL_TRY(CheckStep(request, step));
  for (const RanksOfStep& step : steps) {
    PL_TRY(StepMerger(request, step, report).Run([&](uint64_t ranks) {
      finished += ranks;
      if (request.progress) request.progress(finished, all);
    }));
  }
  return report;
}

}  // namespace plumbline::view
