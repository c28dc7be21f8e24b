#include "load/rank_directories.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "base/text_parts.h"

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

}  // namespace plumbline::load
