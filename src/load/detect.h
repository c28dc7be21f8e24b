// What kind of directory or file is this: from a path a user typed to one rank's dump.json.

#ifndef PLUMBLINE_LOAD_DETECT_H_
#define PLUMBLINE_LOAD_DETECT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "record/run_files.h"

namespace plumbline::load {

// The dump.json meant by `path`: that file itself, the one in a rank directory, or the only one
// below a step or dump directory. A debug.json counts where there is no dump.json. kNotFound when
// there is neither, kInvalidArgument when there are several (the message lists them) or when a file
// is not named *dump.json or *debug.json or is a symbolic link.
Result<std::string> ResolveDumpJson(const std::string& path);

// What a rank directory says about how complete it is.
struct RecordingState {
  uint64_t losses = 0;            // calls, values and files that dump_error_info.log counts as lost
  uint64_t compiled_regions = 0;  // of these: calls inside regions of torch.compile
  bool ended_early = false;       // of these: one, as the process was killed (plumb recover)
  std::string log_problem;  // why dump_error_info.log could not be read, which counts as a loss
  bool unfinished = false;  // the journal of a killed or running process is newer than dump.json
};
// `main_file`: the one that holds the values, dump.json or debug.json.
RecordingState StateOf(const std::string& rank_directory,
                       std::string_view main_file = run_files::kDumpJson);

// That such a recording goes on in the journal in `directory`, and what to do.
std::string UnfinishedText(const std::string& directory);

// The parts of a dump of MindSpore that holds calls and static graphs side by side:
// graph/{step} and pynative/{step}.
struct MixedParts {
  std::vector<std::string> common;          // "pynative/step0", of both
  std::vector<std::string> target, golden;  // of one side alone
};
// Whether `path` is a directory with a directory `graph` or `pynative` in it.
bool IsMixedDump(const std::string& path);
// Requires: IsMixedDump() of both. kIo.
Result<MixedParts> FindMixedParts(const std::string& target, const std::string& golden);

// Every dump.json at or below a dump, step or rank directory, in order of name.
Result<std::vector<std::string>> ListDumpJson(const std::string& directory);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_DETECT_H_
