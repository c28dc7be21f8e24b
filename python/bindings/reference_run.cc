#include "reference_run.h"

#include <fmt/format.h>

#include <vector>

#include "base/file/file.h"
#include "formats/json/dump_json.h"

namespace plumbline::python {
namespace {

Result<std::string> RankDirectory(const std::string& step_directory, std::optional<int> rank) {
  if (KindOf(step_directory) != PathKind::kDirectory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("tensor.bench_path: {} is missing (expected a recording of this step)",
                             step_directory));
  }
  const std::string named = rank ? fmt::format("rank{}", *rank) : "rank";
  if (KindOf(JoinPath(step_directory, named)) == PathKind::kDirectory) {
    return JoinPath(step_directory, named);
  }
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(step_directory));
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name.starts_with("proc") || (name == "rank" && rank)) found.push_back(name);
  }
  if (found.size() == 1) return JoinPath(step_directory, found.front());
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("tensor.bench_path: {} has no {} and {} directories of processes "
                           "without a rank (expected one)",
                           step_directory, named, found.size()));
}

}  // namespace

Result<capture::ReferenceCalls> ReadReference(const std::string& bench_path, int step,
                                              std::optional<int> rank) {
  PL_TRY_ASSIGN(const std::string directory,
                RankDirectory(JoinPath(bench_path, fmt::format("step{}", step)), rank));
  PL_TRY_ASSIGN(const dump_json::DumpFile file,
                dump_json::ReadDump(JoinPath(directory, "dump.json"), /*salvage=*/false));
  capture::ReferenceCalls calls;
  for (const Call& call : file.calls) calls.Add(call);
  return calls;
}

}  // namespace plumbline::python
