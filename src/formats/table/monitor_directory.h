// Directories of a training monitor: one for each rank and start, named by time, rank and an id.

#ifndef PLUMBLINE_FORMATS_TABLE_MONITOR_DIRECTORY_H_
#define PLUMBLINE_FORMATS_TABLE_MONITOR_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// "{MonDD_HH-MM-SS}-rank{R}-{id}"; MindSpore of 1.2.2 leaves out the rank, which is 0 then. Or
// "rank_{R}", "rank_{R}_{n}" with files of a TrainerMonitorV2, of which n counts the runs.
struct MonitorDirectory {
  std::string path, name;
  int64_t rank = 0;
  int64_t time = 0;  // as MonitorTime(), or the number of the run
};

// Of the name of a csv file: "{word}_{first}-{last}.csv", or "{word}_step{first}-{last}.csv" in the
// second form; nothing for others.
struct MonitorFileParts {
  std::string_view word;  // within the name
  int64_t first = 0;
  bool is_second_form = false;
};
std::optional<MonitorFileParts> MonitorFileName(std::string_view name);

// Of "Dec03_21-34-40" a number that grows with the time in a year; nothing for other text.
std::optional<int64_t> MonitorTime(std::string_view text);

// Those in `path`, by rank; several of one rank (a training that was resumed) the latest first. The
// names have no year: a date in December is earlier than one in January where both occur. kIo,
// kNotFound.
Result<std::vector<MonitorDirectory>> ListMonitorDirectories(const std::string& path);
// A name for a directory of `rank` made now, in the time of Asia/Shanghai as upstream has it, with
// a random id.
std::string NewMonitorDirectoryName(int64_t rank);

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_TABLE_MONITOR_DIRECTORY_H_
