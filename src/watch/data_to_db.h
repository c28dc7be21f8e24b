// `data2db`: values over steps, from statistics files into a database of trends.

#ifndef PLUMBLINE_WATCH_DATA_TO_DB_H_
#define PLUMBLINE_WATCH_DATA_TO_DB_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/json/dump_json.h"
#include "formats/sqlite/trend_db.h"
#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline {

// Which micro step of a training step an entry belongs to, and its number inside it.

// Names of the roots with call number 0, in order of their first call. A root is an outermost
// module; one that another root holds by its name (computed again for its gradient, or called
// alone) is none. A micro step can be told by its root only where there is one.
std::vector<std::string> RootNames(const dump_json::CallTree& tree);

// The micro steps of one rank in one step directory. They are those that Megatron counted, else a
// new one starts at every call of the first root. An entry below a root has the micro step of the
// root, gradients that of the forward call, any other entry that of the entry before it.
// Immutable; without a root everything is in micro step 0 and keeps its number.
class MicroSteps {
 public:
  // `names`: the entries of dump.json in file order. kCorrupt: a micro step is no count.
  static Result<MicroSteps> Derive(const dump_json::CallTree& tree,
                                   const std::vector<std::string>& names);

  // How many there are, at least 1.
  [[nodiscard]] int64_t count() const { return count_; }

  struct Place {
    int64_t micro_step = 0;
    std::string name;  // with the number that counts from 0 in every micro step
  };
  // Requires: `name` was among the names given to Derive().
  [[nodiscard]] Place Of(std::string_view name) const;

 private:
  struct Entry {
    int64_t micro_step = 0;
    uint64_t number = 0;
  };

  Status TakeCounted(const dump_json::CallTree& tree);
  void FollowRoots(const dump_json::CallTree& tree);
  void PlaceOthers(const std::vector<std::string>& names);
  void Renumber();

  std::unordered_map<std::string, Entry> entries_;  // by name of the forward call
  int64_t count_ = 1;
  bool renumbers_ = false;
};

// One entry of dump.json -> rows of the trend database, and the tags of a row.

// Metrics of a dump, in order of their numbers.
enum class DumpMetric : uint8_t { kForward, kBackward, kRecompute, kParametersGrad };

// Old text -> new text, in the order in which they are applied.
using NameMapping = std::vector<std::pair<std::string, std::string>>;

// `name` after every occurrence of every old text was replaced.
std::string MapName(std::string name, const NameMapping& mapping);

// trend_db::ValueOf() of a statistic: absent is nothing, truth is 1 or 0.
std::optional<double> TrendValue(const Statistic& statistic);

// The rows of `call`, whose name is mapped already; rank and step are left 0. One row per tensor,
// whatever its dtype, keyword arguments and nested values included. Empty for an entry that is
// neither forward, backward nor parameters_grad.
std::vector<trend_db::Row> TrendRows(const Call& call);

// See docs/formats/trend_db.md. Empty for names of fewer than three components.
std::vector<trend_db::Tag> TrendTags(const trend_db::Row& row);

// `plumb data2db`: the steps of a dump directory, or what a training monitor wrote, as one database
// for the trend viewer.

struct DataToDbOptions {
  std::string mapping_path;  // JSON object {old text: new text}; empty: none
  // Nothing: of a dump where the modules have one root, of a monitor always.
  std::optional<bool> micro_steps;
  // Called before each file.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

struct DataToDbReport {
  std::string path;
  std::vector<std::string> metrics;
  std::vector<uint64_t> rows;  // of each metric
  uint64_t targets = 0;
  uint64_t left_out = 0;     // rows with the key of an earlier one
  uint64_t steps = 0;        // of a dump: directories
  uint64_t directories = 0;  // of a monitor
  uint64_t of_earlier = 0;   // rows from the first step of a later directory of their rank on
  int64_t max_rank = 0, min_step = 0, max_step = 0;
  bool micro_steps = false;
  std::vector<std::string> notes;     // what the scan decided
  std::vector<std::string> warnings;  // what is missing or was replaced
  std::string damage;  // of a monitor: " in what could be read (...)"; empty: all could be
};

// Imports step{N}/rank{R}/dump.json below `data` into `output`/dump_data.trend.db, which appears
// when it is complete; `output` is made if missing. Memory: one entry of a dump.json at a time, the
// names of one file, and one record per target.
// kNotFound (no directory, no recording, no tensor), kCorrupt (dump.json, construct.json or the
// mapping), kInvalidArgument, kIo. After an error there is no new database, and an old one stays.
Result<DataToDbReport> DataToDb(const std::string& data, const std::string& output,
                                const DataToDbOptions& options);

// Shared with monitor_to_db.h: the mapping file (empty: none), and the database in `output`, which
// is made if missing.
Result<NameMapping> ReadMapping(const std::string& path);
struct NewTrendDb {
  trend_db::Writer writer;
  std::string path;
  bool is_replacement = false;  // of an old database, once it is finished
};
Result<NewTrendDb> NewDatabase(const std::string& output, std::string_view name,
                               trend_db::Form form, trend_db::TagsOf tags_of);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_DATA_TO_DB_H_
