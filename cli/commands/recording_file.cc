#include "commands/recording_file.h"

#include "base/file/file.h"
#include "load/detect.h"

namespace plumbline::cli {

Result<std::string> RecordingFile(const std::string& path, bool takes_directory) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  if (facts.kind == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, path + ": no such file or directory");
  }
  if (facts.kind == PathKind::kDirectory && takes_directory) return load::ResolveDumpJson(path);
  if (facts.is_link) {
    return Error(ErrorCode::kInvalidArgument,
                 path +
                     ": is a symbolic link (expected the dump.json itself). Name the file that it "
                     "points to");
  }
  if (facts.kind != PathKind::kFile || !path.ends_with(".json")) {
    return Error(ErrorCode::kInvalidArgument,
                 path + ": is no .json file (expected a dump.json). Name the one of the recording");
  }
  return path;
}

}  // namespace plumbline::cli
