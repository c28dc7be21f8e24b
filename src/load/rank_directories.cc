#include "load/rank_directories.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/debug_mode_log.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "record/run_files.h"

namespace plumbline::load {

namespace {

constexpr std::string_view kRank = "rank";
constexpr std::string_view kProcess = "proc";
constexpr std::string_view kStep = "step";

// rank_{pid} and rank{R}_{pid}: a second process that found its directory taken.
bool IsContested(std::string_view name) {
  if (!name.starts_with(kRank)) return false;
  const size_t underscore = name.find('_');
  if (underscore == std::string_view::npos || !IsDigits(name.substr(underscore + 1))) return false;
  const std::string_view rank = name.substr(kRank.size(), underscore - kRank.size());
  return rank.empty() || IsDigits(rank);
}

bool IsRankName(std::string_view name) {
  return name == kRank || NaturalAfter(kRank, name) || NaturalAfter(kProcess, name) ||
         IsContested(name);
}

bool Before(const RankDirectory& a, const RankDirectory& b) {
  if (a.rank.has_value() != b.rank.has_value()) return a.rank.has_value();
  if (a.rank != b.rank) return a.rank < b.rank;
  return a.name < b.name;
}

// Gives the only proc{pid} the free rank 0.
void NumberSoleProcess(std::vector<RankDirectory>& ranks) {
  RankDirectory* sole = nullptr;
  for (RankDirectory& rank : ranks) {
    if (rank.rank == 0) return;
    if (!rank.name.starts_with(kProcess)) continue;
    if (sole != nullptr) return;
    sole = &rank;
  }
  if (sole != nullptr) sole->rank = 0;
}

}  // namespace

Result<std::vector<RankDirectory>> ListRankDirectories(const std::string& step_directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(step_directory));
  std::vector<RankDirectory> ranks;
  for (const std::string& name : names) {
    if (!IsRankName(name)) continue;
    const std::string path = JoinPath(step_directory, name);
    PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
    if (facts.is_link) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: a symbolic link (expected a directory). Name the directory it "
                               "points to.",
                               path));
    }
    if (facts.kind != PathKind::kDirectory) continue;
    ranks.push_back({path, name, name == kRank ? 0 : NaturalAfter(kRank, name)});
  }
  NumberSoleProcess(ranks);
  std::sort(ranks.begin(), ranks.end(), Before);
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (!ranks[i].rank || ranks[i].rank != ranks[i - 1].rank) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: {} and {} are both rank {}. Move one of them away.",
                             step_directory, ranks[i - 1].name, ranks[i].name, *ranks[i].rank));
  }
  return ranks;
}

Result<std::vector<StepDirectory>> ListStepDirectories(const std::string& dump_directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(dump_directory));
  std::vector<StepDirectory> steps;
  for (const std::string& name : names) {
    const std::optional<int64_t> step = NaturalAfter(kStep, name);
    const std::string path = JoinPath(dump_directory, name);
    if (!step || KindOf(path) != PathKind::kDirectory) continue;
    steps.push_back({path, *step});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const StepDirectory& a, const StepDirectory& b) { return a.step < b.step; });
  return steps;
}

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

// The rank that `path` itself is: its directory or its dump.json, or a log. Nothing: it is
// something else.
std::optional<RankDirectory> SoleRank(const std::string& path) {
  const bool is_file = KindOf(path) == PathKind::kFile;
  const std::string_view base = BaseName(path);
  if (is_file && debug_mode::FormOfLog(path)) return RankDirectory{path, std::string(base), 0};
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

// The ranks of a step; a step directory may itself be that of its only rank.
Result<std::vector<RankDirectory>> RanksOfStep(const std::string& path) {
  PL_TRY_ASSIGN(std::vector<RankDirectory> ranks, load::ListRankDirectories(path));
  if (ranks.empty() && KindOf(JoinPath(path, run_files::kDumpJson)) == PathKind::kFile) {
    ranks.push_back({path, std::string(kRank), 0});
  }
  return ranks;
}

Status AddStep(std::optional<int64_t> step, const StepPaths& paths, RankPairs& out) {
  std::vector<RankDirectory> target, golden;
  if (!paths.target.empty()) {
    PL_TRY_ASSIGN(target, RanksOfStep(paths.target));
    NoteFilesNamedLikeRanks(paths.target, out.notes);
  }
  if (!paths.golden.empty()) {
    PL_TRY_ASSIGN(golden, RanksOfStep(paths.golden));
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

namespace {

using load::GraphDirectory;
using Place = std::pair<int64_t, int64_t>;  // rank, step
using Places = std::map<Place, std::vector<std::string>>;

Places PlacesBelow(const std::string& root) {
  Places places;
  for (GraphDirectory& each : load::ListGraphDirectories(root)) {
    places[{each.rank, each.step}].push_back(std::move(each.path));
  }
  return places;
}

load::RankDirectory DirectoryOfPlace(const Place& place,
                                     const std::vector<std::string>& directories) {
  return {load::GraphPath(directories), fmt::format("{}_{}", place.first, place.second),
          place.first};
}

bool IsSolePair(const Places& targets, const Places& goldens, const RankFilter& filter) {
  return filter.ranks.empty() && filter.steps.empty() && targets.size() == 1 && goldens.size() == 1;
}

Status CheckGraphs(const std::string& path) {
  if (KindOf(path) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", path));
  }
  if (load::IsGraphDump(path)) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: no static-graph dump (expected .npy files of kernels or "
                           "statistic.csv in rank_0/net/graph/step)",
                           path));
}

}  // namespace

Result<RankPairs> FindGraphPairs(const std::string& target, const std::string& golden,
                                 const RankFilter& filter) {
  PL_TRY(CheckGraphs(target));
  PL_TRY(CheckGraphs(golden));
  const auto targets = PlacesBelow(target), goldens = PlacesBelow(golden);
  RankPairs out;
  out.has_steps = true;
  out.of_graphs = true;
  const auto add = [&](const Place& place, const std::vector<std::string>* left,
                       const std::vector<std::string>* right) {
    RankPair& pair = out.pairs.emplace_back();
    pair.step = place.second;
    if (left != nullptr) pair.target = DirectoryOfPlace(place, *left);
    if (right != nullptr) pair.golden = DirectoryOfPlace(place, *right);
  };
  if (IsSolePair(targets, goldens, filter)) {
    add(targets.begin()->first, &targets.begin()->second, &goldens.begin()->second);
    return out;
  }
  std::map<Place, std::pair<const std::vector<std::string>*, const std::vector<std::string>*>> all;
  for (const auto& [place, directories] : targets) all[place].first = &directories;
  for (const auto& [place, directories] : goldens) all[place].second = &directories;
  for (const auto& [place, sides] : all) {
    if (!Wanted(filter.ranks, place.first) || !Wanted(filter.steps, place.second)) continue;
    add(place, sides.first, sides.second);
  }
  if (!out.pairs.empty()) return out;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no rank and step of these numbers, nor in {}", target, golden));
}

bool IsSoleGraphPair(const std::string& target, const std::string& golden,
                     const RankFilter& filter) {
  return IsSolePair(PlacesBelow(target), PlacesBelow(golden), filter);
}

std::string GraphSuffix(const std::string& path) {
  const auto places = PlacesBelow(path);
  if (places.size() != 1) return {};
  return fmt::format("_{}_{}", places.begin()->first.first, places.begin()->first.second);
}

std::string GraphPathBelow(const std::string& root, int64_t rank, int64_t step) {
  const auto places = PlacesBelow(root);
  const auto found = places.find({rank, step});
  return found == places.end() ? root : load::GraphPath(found->second);
}

}  // namespace plumbline::load
