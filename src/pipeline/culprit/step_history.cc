#include "pipeline/culprit/step_history.h"

#include <algorithm>

#include "base/file.h"

namespace plumbline::pipeline {

RunPlace PlaceOf(const Run& run) {
  const Result<std::string> path = AbsolutePath(run.dump_json_path());
  RunPlace place;
  place.rank_path = DirectoryOf(path ? *path : run.dump_json_path());
  place.step_path = DirectoryOf(place.rank_path);
  place.dump_path = DirectoryOf(place.step_path);
  return place;
}

std::optional<StepHistory> StepHistoryOf(const Run& run) {
  const RunPlace place = PlaceOf(run);
  auto steps = load::ListStepDirectories(place.dump_path);
  if (!steps) return std::nullopt;
  const auto here = std::find_if(steps->begin(), steps->end(), [&](const auto& each) {
    return BaseName(each.path) == BaseName(place.step_path);
  });
  if (here == steps->end()) return std::nullopt;
  return StepHistory{{steps->begin(), here}, *here, std::string(BaseName(place.rank_path))};
}

std::optional<int64_t> StepHistory::step_before() const {
  if (!earlier.empty()) return earlier.back().step;
  return own.step > 0 ? std::optional(own.step - 1) : std::nullopt;
}

}  // namespace plumbline::pipeline
