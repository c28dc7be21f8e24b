// What a training monitor leaves: a directory for each rank, in it csv files of statistics by step,
// or a database of them.

#ifndef PLUMBLINE_LOAD_MONITOR_FILES_H_
#define PLUMBLINE_LOAD_MONITOR_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/table/monitor_directory.h"
#include "plumbline/result.h"

namespace plumbline::load {

using plumbline::ListMonitorDirectories;
using plumbline::MonitorDirectory;
using plumbline::MonitorTime;

// ListMonitorDirectories() where there must be one: kNotFound says what names are expected.
Result<std::vector<MonitorDirectory>> NeedMonitorDirectories(const std::string& path);
bool HoldsMonitorDirectories(const std::string& path);

// "{kind}_{first}-{last}.csv"; or "{part}_step{first}-{last}.csv" of a TrainerMonitorV2, once for
// each kind whose rows the part can have; or a metric of a database,
// "monitor_data.trend.db/{kind}".
struct MonitorFile {
  std::string path;
  std::string kind;        // "actv", "grad_reduced", ...
  int64_t first_step = 0;  // as the name says
};

// Those in a directory, by kind and first step; of a database where there is no csv file. kIo,
// kNotFound.
Result<std::vector<MonitorFile>> ListMonitorFiles(const std::string& directory);

// Which rows count of a training that was resumed: for each kind of file the later directory of a
// rank from its first step on. To be asked in the order of ListMonitorDirectories(), the latest
// first.
class ResumedRows {
 public:
  // Before the files of a directory; `directory` tells it from others.
  void Begin(size_t directory);
  // The first step of the later directories: rows from there on do not count. Nothing: all do.
  [[nodiscard]] std::optional<int64_t> EndOf(int64_t rank, const std::string& kind) const;
  // A row that counts.
  void Take(int64_t rank, const std::string& kind, int64_t step);

 private:
  using Steps = std::map<std::pair<int64_t, std::string>, int64_t>;
  static void Lower(Steps& steps, const Steps::key_type& key, int64_t step);

  size_t directory_ = 0;
  Steps of_later_, of_this_;
};

// One watched tensor in one step.
struct MonitorRow {
  std::string name;  // "0.fc1.input", "fc1.weight"
  int64_t vpp_stage = 0, step = 0, micro_step = 0;
  std::vector<std::optional<double>>
      values;  // one for each statistic; nothing: not a number's text
};

struct MonitorFileFacts {
  uint64_t rows = 0, left_out = 0;
  std::string first_left_out;  // "line 7: ...", of the rows that are left out
  uint64_t odd_cells = 0;      // of statistics, with text that is no number
  std::string first_odd_cell;  // likewise
  bool is_cut = false;         // ends within a row
  bool is_empty = false;       // not even a header
};

// Called for each row with the names of the file's statistics. Errors end the reading.
using VisitMonitorRow =
    std::function<Status(std::span<const std::string> statistics, MonitorRow& row)>;

// The rows of one kind. The layouts of 1.2.2 and later, those of its MindSpore, of TrainerMonitorV2
// (with the names and stages that the others would have), and rows of communication as 1.2.2 writes
// them: under the header of others, without a stage, all tensors of a call in one row; they become
// "{call}.0", "{call}.1", ... Of a metric of a database (docs/formats/trend_db.md): what is null
// there is NaN. kCorrupt: no header of a monitor, or damaged quotes. kNotFound, kIo.
Result<MonitorFileFacts> VisitMonitorFile(const std::string& path, std::string_view kind,
                                          const VisitMonitorRow& visit);

// One sentence for each kind of damage of a file.
std::vector<std::string> DamageOf(const std::string& path, const MonitorFileFacts& facts);

// What of a monitor's output could not be read, while the rest is.
struct MonitorDamage {
  std::vector<std::string> sentences;
  uint64_t places = 0;               // files and directories that are damaged or missing
  std::optional<Error> first_error;  // why one could not be read at all, or up to its end

  void Take(const Error& error);
  void Take(const std::string& path, const Result<MonitorFileFacts>& read);
  void Take(MonitorDamage other);
  // Links to nothing in `path` that are called like a monitor's directory.
  void TakeBrokenLinks(const std::string& path);
  // The files of a directory; none where it cannot be listed.
  std::vector<MonitorFile> FilesOf(const MonitorDirectory& directory);
  // " in what could be read (2 files or directories damaged or missing)"; empty: nothing is.
  [[nodiscard]] std::string text() const;

 private:
  // Of one place; what was told before is not again.
  void Add(std::vector<std::string> of_place);
};

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_MONITOR_FILES_H_
