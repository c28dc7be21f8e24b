// Which step of a dump a run is, and which steps of the same dump were recorded before it.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_STEP_HISTORY_H_
#define PLUMBLINE_PIPELINE_CULPRIT_STEP_HISTORY_H_

#include <optional>
#include <string>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/run.h"

namespace plumbline::pipeline {

struct StepHistory {
  std::vector<load::StepDirectory> earlier;  // in order of time
  load::StepDirectory own;
  std::string rank_name;  // of the directory in `own`

  // Of the last step recorded before this one; where none is, the number before. Nothing for step
  // 0.
  [[nodiscard]] std::optional<int64_t> step_before() const;
};

// The directory of the dump, of the step and of the rank of a recording, whether they are called so
// or not. Absolute, so that the directories above have names.
struct RunPlace {
  std::string dump_path, step_path, rank_path;
};
RunPlace PlaceOf(const Run& run);
// Of the rank whose files are in `directory`.
RunPlace PlaceOfRank(const std::string& directory);

// By the directories of the place; nothing when they are not those of a dump.
std::optional<StepHistory> StepHistoryOf(const RunPlace& place);

// What can have made parameters differ before the recording of a step begins, in words. Fused and
// foreach optimizers make no calls that are recorded, so that nothing before points at them.
std::string BeforeTheStep(const Run& target, const Run& golden);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_STEP_HISTORY_H_
