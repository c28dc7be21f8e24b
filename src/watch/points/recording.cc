#include "watch/points/recording.h"

#include <fmt/format.h>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "load/checkpoint.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "load/monitor_files.h"

namespace plumbline::watch {
namespace {

// A directory whose steps or ranks have dump.json.
bool HoldsCalls(const std::string& path) {
  const auto found = load::ListDumpJson(path);
  return found && !found->empty();
}

}  // namespace

Result<Recording> OpenRecording(const std::string& path) {
  const PathKind kind = KindOf(path);
  if (kind == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", path));
  }
  if (kind == PathKind::kFile) {
    return path.ends_with(".json") ? OpenCalls(path) : OpenCheckpoints(path);
  }
  if (load::HoldsMonitorDirectories(path)) return OpenMonitor(path);
  if (HoldsCalls(path)) {
    if (load::IsMixedDump(path)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: holds recorded calls and static graphs. Name one of them: "
                               "{}/pynative or {}/graph.",
                               path, path, path));
    }
    return OpenCalls(path);
  }
  if (load::IsGraphDump(path)) return OpenGraphs(path);
  if (HoldsCheckpoints(path) || load::LooksLikeCheckpoint(path)) return OpenCheckpoints(path);
  return OpenCalls(path);  // says what is expected
}

}  // namespace plumbline::watch
