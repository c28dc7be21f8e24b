#include "pipeline/compare_mode.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/file.h"
#include "match/expand.h"

namespace plumbline::pipeline {
namespace {

Error TaskError(const Run& run, std::string_view problem) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", run.dump_json_path(), problem));
}

// Tasks that look for something while recording, and keep no values of the other calls.
bool IsSearch(std::string_view task) {
  return task == "overflow_check" || task == "nan_check" || task == "diff_check";
}

std::string SearchAdvice(std::string_view task, const PairingSide& side) {
  const std::string_view directory = DirectoryOf(side.run.dump_json_path());
  const std::string answer =
      task == "diff_check"
          ? fmt::format("`plumb inspect {}` lists the tensors of the calls that differed",
                        directory)
          : fmt::format("`plumb overflow {}` names the first NaN or Inf", directory);
  return fmt::format(
      "was recorded with task {}, which has no values to compare of most calls (expected tensor or "
      "statistics). {}; to compare, record both sides with task statistics.",
      task, answer);
}

}  // namespace

Result<CompareMode> ModeOf(const PairingSide& target, const PairingSide& golden,
                           bool has_data_mapping) {
  for (const PairingSide* side : {&target, &golden}) {
    const std::string& task = side->run.header().task;
    if (task.empty()) return TaskError(side->run, "has no task (expected tensor or statistics)");
    if (IsSearch(task)) return TaskError(side->run, SearchAdvice(task, *side));
    if (task != "tensor" && task != "statistics") {
      return TaskError(side->run, fmt::format("task {} cannot be compared (expected tensor or "
                                              "statistics)",
                                              task));
    }
  }
  if (target.run.header().of_graphs != golden.run.header().of_graphs && !has_data_mapping) {
    const Run& run = target.run.header().of_graphs ? golden.run : target.run;
    return TaskError(run,
                     "no static-graph dump, as the other side is (expected two of one kind, or "
                     "-dm FILE, which says what stands against what)");
  }
  if (target.run.header().holds_saves() != golden.run.header().holds_saves()) {
    return TaskError(target.run,
                     fmt::format("level is {}, but {} has level {}; saved values cannot "
                                 "be compared with calls. Name two debug.json or two "
                                 "dump.json.",
                                 target.run.header().level, golden.run.dump_json_path(),
                                 golden.run.header().level));
  }
  const std::string& task = target.run.header().task;
  const bool same_task = task == golden.run.header().task;
  // Of two graphs both have statistics: FillGraphStatistics().
  const bool are_graphs = target.run.header().of_graphs && golden.run.header().of_graphs;
  if (!same_task && !are_graphs) {
    return TaskError(target.run,
                     fmt::format("task is {}, but {} has task {}. Record both sides "
                                 "with the same task.",
                                 task, golden.run.dump_json_path(), golden.run.header().task));
  }
  if (same_task && task == "tensor") return CompareMode::kTensor;
  const bool target_digests = match::HasDigests(target.calls);
  const bool golden_digests = match::HasDigests(golden.calls);
  if (target_digests != golden_digests && !target.calls.empty() && !golden.calls.empty()) {
    const PairingSide& with = target_digests ? target : golden;
    const PairingSide& without = target_digests ? golden : target;
    return TaskError(with.run, fmt::format("holds md5 digests, but {} does not. Record both sides "
                                           "with the same summary_mode.",
                                           without.run.dump_json_path()));
  }
  return target_digests && golden_digests ? CompareMode::kDigest : CompareMode::kStatistics;
}

}  // namespace plumbline::pipeline
