#include "pipeline/ranks/rank_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/file.h"
#include "load/detect.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

using load::RankDirectory;

// The steps of one side; a step directory is one step without a number.
struct Side {
  std::vector<load::StepDirectory> steps;  // empty: `path` is a step directory
  std::vector<RankDirectory> ranks;        // of that step directory
};

Error NoRank(const std::string& path) {
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no rank directory here nor in a step directory below (expected "
                           "rank0, rank or proc...). Name a step directory or a dump directory.",
                           path));
}

// The rank that `path` itself is: its directory or its dump.json. Nothing: it is something else.
std::optional<RankDirectory> SoleRank(const std::string& path) {
  const bool is_file = KindOf(path) == PathKind::kFile;
  const std::string_view base = BaseName(path);
  if (is_file && base != run_files::kDumpJson && base != run_files::kDebugJson) return std::nullopt;
  const std::string directory = is_file ? std::string(DirectoryOf(path)) : path;
  const auto holds = [&](std::string_view name) {
    return KindOf(JoinPath(directory, name)) == PathKind::kFile;
  };
  if (!holds(run_files::kDumpJson) && !holds(run_files::kDebugJson)) return std::nullopt;
  const Result<std::string> real = RealPath(directory);
  RankDirectory rank{directory, std::string(BaseName(real ? *real : directory)), 0};
  const auto siblings =
      load::ListRankDirectories(real ? std::string(DirectoryOf(*real)) : std::string("."));
  if (!siblings) return rank;
  for (const RankDirectory& sibling : *siblings) {
    if (sibling.name == rank.name) rank.rank = sibling.rank;
  }
  return rank;
}

Result<Side> ReadSide(const std::string& path) {
  if (KindOf(path) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", path));
  }
  if (KindOf(path) != PathKind::kDirectory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: not a directory (expected a step or dump directory)", path));
  }
  Side side;
  PL_TRY_ASSIGN(side.ranks, load::ListRankDirectories(path));
  if (!side.ranks.empty()) return side;
  PL_TRY_ASSIGN(side.steps, load::ListStepDirectories(path));
  if (side.steps.empty()) return NoRank(path);
  return side;
}

// Files where the directory of a rank is expected, such as an archive that was never unpacked.
void NoteFilesNamedLikeRanks(const std::string& directory, std::vector<std::string>& notes) {
  const auto names = ListDirectory(directory);
  if (!names) return;
  constexpr std::string_view kRank = "rank";
  for (const std::string& name : *names) {
    if (!name.starts_with(kRank)) continue;
    const std::string path = JoinPath(directory, name);
    if (KindOf(path) == PathKind::kDirectory) continue;
    notes.push_back(fmt::format("{}: not a directory (expected that of a rank)", path));
  }
}

// Ranks with a number meet by number; the others stay alone: process ids of two runs say nothing.
void PairRanks(std::optional<int64_t> step, const std::vector<RankDirectory>& target,
               const std::vector<RankDirectory>& golden, std::vector<RankPair>& pairs) {
  std::map<int64_t, RankPair> by_number;
  std::vector<RankPair> alone;
  for (const RankDirectory& rank : target) {
    if (rank.rank) {
      by_number[*rank.rank].target = rank;
    } else {
      alone.push_back({step, rank, std::nullopt});
    }
  }
  for (const RankDirectory& rank : golden) {
    if (rank.rank) {
      by_number[*rank.rank].golden = rank;
    } else {
      alone.push_back({step, std::nullopt, rank});
    }
  }
  for (auto& [number, pair] : by_number) {
    pair.step = step;
    pairs.push_back(std::move(pair));
  }
  for (RankPair& pair : alone) pairs.push_back(std::move(pair));
}

bool Wanted(const std::vector<int64_t>& wanted, std::optional<int64_t> number) {
  if (wanted.empty()) return true;
  return number && std::find(wanted.begin(), wanted.end(), *number) != wanted.end();
}

struct StepPaths {
  std::string target, golden;  // one may be empty
};

Status AddStep(std::optional<int64_t> step, const StepPaths& paths, RankPairs& out) {
  std::vector<RankDirectory> target, golden;
  if (!paths.target.empty()) {
    PL_TRY_ASSIGN(target, load::ListRankDirectories(paths.target));
    NoteFilesNamedLikeRanks(paths.target, out.notes);
  }
  if (!paths.golden.empty()) {
    PL_TRY_ASSIGN(golden, load::ListRankDirectories(paths.golden));
    NoteFilesNamedLikeRanks(paths.golden, out.notes);
  }
  for (const auto& [path, ranks] :
       {std::pair(&paths.target, &target), std::pair(&paths.golden, &golden)}) {
    if (path->empty() || !ranks->empty()) continue;
    out.notes.push_back(
        fmt::format("{}: no rank directory (expected rank0, rank or proc...)", *path));
  }
  PairRanks(step, target, golden, out.pairs);
  return {};
}

// A rank or step that was asked for by number and exists on neither side.
void NoteUnknownNumbers(const RankFilter& filter, RankPairs& out) {
  const auto note = [&](const std::vector<int64_t>& wanted, std::string_view what,
                        const auto& number_of) {
    for (const int64_t number : wanted) {
      const bool found = std::any_of(out.pairs.begin(), out.pairs.end(), [&](const RankPair& p) {
        return number_of(p) == std::optional<int64_t>(number);
      });
      if (!found) {
        out.notes.push_back(
            fmt::format("{} {} was asked for and is on neither side", what, number));
      }
    }
  };
  note(filter.ranks, "rank", [](const RankPair& pair) { return pair.rank(); });
  note(filter.steps, "step", [](const RankPair& pair) { return pair.step; });
}

size_t CountRanks(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) return 0;
  for (const std::string_view name : {run_files::kDumpJson, run_files::kDebugJson}) {
    if (KindOf(JoinPath(path, name)) == PathKind::kFile) return 0;
  }
  const auto ranks = load::ListRankDirectories(path);
  if (!ranks || !ranks->empty()) return ranks ? ranks->size() : 0;
  const auto steps = load::ListStepDirectories(path);
  if (!steps) return 0;
  size_t count = 0;
  for (const load::StepDirectory& step : *steps) {
    const auto of_step = load::ListRankDirectories(step.path);
    if (of_step) count += of_step->size();
  }
  return count;
}

}  // namespace

std::string RankPair::label() const {
  const load::RankDirectory& side = target ? *target : *golden;
  const std::string rank = side.rank ? fmt::format("rank {}", *side.rank) : side.name;
  return step ? fmt::format("step {} {}", *step, rank) : rank;
}

std::optional<int64_t> RankPair::rank() const { return target ? target->rank : golden->rank; }

Result<RankPairs> FindRankPairs(const std::string& target, const std::string& golden,
                                const RankFilter& filter) {
  const std::optional<RankDirectory> sole_target = SoleRank(target), sole_golden = SoleRank(golden);
  if (sole_target && sole_golden) {  // named by hand: a pair whatever their numbers
    if (!filter.ranks.empty() || !filter.steps.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: one rank (expected a step or dump directory, from which --rank "
                               "and --step choose)",
                               target));
    }
    RankPairs one;
    one.pairs.push_back({std::nullopt, sole_target, sole_golden});
    return one;
  }
  PL_TRY_ASSIGN(const Side target_side, ReadSide(target));
  PL_TRY_ASSIGN(const Side golden_side, ReadSide(golden));
  if (target_side.steps.empty() != golden_side.steps.empty()) {
    const bool is_target = target_side.steps.empty();
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: a step directory, but {} holds steps. Name two step directories "
                             "or two dump directories.",
                             is_target ? target : golden, is_target ? golden : target));
  }
  RankPairs out;
  out.has_steps = !target_side.steps.empty();
  if (!out.has_steps) {
    PL_TRY(AddStep(std::nullopt, {target, golden}, out));
  } else {
    std::map<int64_t, StepPaths> steps;
    for (const auto& step : target_side.steps) steps[step.step].target = step.path;
    for (const auto& step : golden_side.steps) steps[step.step].golden = step.path;
    for (const auto& [number, paths] : steps) {
      if (Wanted(filter.steps, number)) PL_TRY(AddStep(number, paths, out));
    }
  }
  if (!out.has_steps && !filter.steps.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("--step: {} is the directory of one step (expected a dump directory "
                             "with step0, step1, ...)",
                             target));
  }
  std::erase_if(out.pairs, [&](const RankPair& p) { return !Wanted(filter.ranks, p.rank()); });
  if (out.pairs.empty()) {
    const bool filtered = !filter.ranks.empty() || !filter.steps.empty();
    if (!filtered) return NoRank(target);
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no rank of that number in a step of that number, nor in {}",
                             target, golden));
  }
  NoteUnknownNumbers(filter, out);
  return out;
}

bool HoldRanks(const std::string& target, const std::string& golden, size_t at_least) {
  const size_t targets = CountRanks(target), goldens = CountRanks(golden);
  return targets > 0 && goldens > 0 && std::max(targets, goldens) >= at_least;
}

}  // namespace plumbline::pipeline
