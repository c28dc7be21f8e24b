#include "overflow/steps_to_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file/file.h"
#include "record/run_files.h"

namespace plumbline {
namespace {

using load::RankDirectory;

bool IsRank(const std::string& path) {
  return KindOf(JoinPath(path, run_files::kDumpJson)) == PathKind::kFile;
}

// The ranks below `path` when it is a step; the rank itself when it is one.
Result<std::vector<RankDirectory>> RanksOf(const std::string& path) {
  if (IsRank(path)) {
    PL_TRY_ASSIGN(const std::string real, RealPath(path));
    PL_TRY_ASSIGN(const std::vector<RankDirectory> siblings,
                  load::ListRankDirectories(std::string(DirectoryOf(real))));
    const auto self = std::find_if(siblings.begin(), siblings.end(), [&](const RankDirectory& d) {
      return d.name == BaseName(real);
    });
    std::optional<int64_t> rank = 0;
    if (self != siblings.end()) rank = self->rank;
    return std::vector<RankDirectory>{{path, std::string(BaseName(real)), rank}};
  }
  return load::ListRankDirectories(path);
}

}  // namespace

Result<std::vector<StepToCheck>> StepsToCheck(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", path));
  }
  std::vector<StepToCheck> steps;
  PL_TRY_ASSIGN(std::vector<RankDirectory> ranks, RanksOf(path));
  if (!ranks.empty()) {
    steps.push_back({path, std::move(ranks), IsRank(path)});
    return steps;
  }
  PL_TRY_ASSIGN(const std::vector<load::StepDirectory> found, load::ListStepDirectories(path));
  for (const load::StepDirectory& step : found) {
    PL_TRY_ASSIGN(ranks, RanksOf(step.path));
    if (ranks.empty()) {
      return Error(
          ErrorCode::kNotFound,
          fmt::format("{}: no rank directory (expected rank0, rank or proc...)", step.path));
    }
    steps.push_back({step.path, std::move(ranks)});
  }
  if (steps.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no rank directory here nor in a step directory below (expected "
                             "rank0, rank or proc...). Name the directory of one step.",
                             path));
  }
  return steps;
}

}  // namespace plumbline
