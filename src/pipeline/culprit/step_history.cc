#include "pipeline/culprit/step_history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"

namespace plumbline::pipeline {

RunPlace PlaceOf(const Run& run) {
  return PlaceOfRank(std::string(DirectoryOf(run.dump_json_path())));
}

RunPlace PlaceOfRank(const std::string& directory) {
  RunPlace place;
  const Result<std::string> path = AbsolutePath(directory);
  place.rank_path = path ? *path : directory;
  place.step_path = DirectoryOf(place.rank_path);
  place.dump_path = DirectoryOf(place.step_path);
  return place;
}

std::optional<StepHistory> StepHistoryOf(const RunPlace& place) {
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

std::string BeforeTheStep(const Run& target, const Run& golden) {
  const std::optional<StepHistory> history = StepHistoryOf(PlaceOf(target));
  // Steps of one dump that are compared with each other are variants, not the history of one run.
  if (!history || PlaceOf(target).dump_path == PlaceOf(golden).dump_path) {
    return "the step before (optimizer), or at what was loaded";
  }
  const std::optional<int64_t> before = history->step_before();
  if (!before) return "how they are initialised, or at what was loaded";
  return fmt::format(
      "the optimizer step between step {} and step {} (no calls of it are recorded here), or at "
      "what was loaded",
      *before, history->own.step);
}

}  // namespace plumbline::pipeline
