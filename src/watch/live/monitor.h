// A training that is watched: values of tensors go in, whole steps come out, in files and in
// memory.

#ifndef PLUMBLINE_WATCH_LIVE_MONITOR_H_
#define PLUMBLINE_WATCH_LIVE_MONITOR_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "base/process/of_process.h"
#include "watch/live/alerts.h"
#include "watch/live/monitor_config.h"
#include "watch/live/progress.h"
#include "watch/live/rule_watch.h"
#include "watch/live/step_rows.h"

namespace plumbline::watch {

// Where a monitor writes.
struct MonitorPlace {
  std::string output;  // MONITOR_OUTPUT_DIR
  AlertPlace alerts;
  std::optional<int64_t> rank;  // nothing: not distributed
  int64_t first_step = 0;       // rows from there on are removed from a directory appended to
  bool goes_on = false;         // after a change of the configuration
};

// What writes the trend viewer's database. It is in a module of its own, watch/trend_sink.h: SQLite
// is loaded into the trainings alone that ask for it.
struct TrendModule {
  Result<std::unique_ptr<StepSink>> (*open)(const std::string& directory,
                                            const MonitorConfig& config, int64_t rank);
  Status (*trim)(const std::string& directory, int64_t rank, int64_t step);
};

// "{output}/{MonDD_HH-MM-SS}-rank{R}-{8 hex}", in the time of Asia/Shanghai as upstream has it; or,
// with MonitorConfig::append_from, the latest one of this rank between both times. `warning` says
// why there was none. kIo, kInvalidArgument (times).
// `trend` is needed for Format::kSqlite alone.
Result<std::string> MakeMonitorDirectory(const MonitorConfig& config, const MonitorPlace& place,
                                         const TrendModule* trend, std::string* warning);

// Add() and Commit() are called by the training, under the program's lock; files are written by a
// thread of its own, one step behind at most. What fails is kept for TakeProblem() and never comes
// out of Add() or Commit().
class Monitor {
 public:
  // `sink` null: nothing is written. `alert_path`: anomaly.json, empty for none. Keeps the last
  // `ring` steps.
  Monitor(const MonitorConfig& config, AlertPlace place, std::unique_ptr<StepSink> sink,
          std::string alert_path, size_t ring);
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  ~Monitor();

  // Holds rules against the steps to come; before the first one.
  void Watch(std::unique_ptr<RuleWatch> rules);
  // Shows a line on the terminal while steps are written; before the first one. `place`: where.
  void ShowProgress(const std::string& place) { progress_.emplace(place); }
  // The same text, stage and group give the same name.
  const WatchedName* Name(std::string_view text, int32_t vpp_stage, uint32_t group);
  void Add(MonitorKind kind, const WatchedName* name, int32_t micro_step, TensorValues values);
  void AddAdam(const WatchedName* name, const AdamHistograms& histograms);
  // Ends the step: hands what was added to the writer. Nothing added: no step. Waits only when two
  // steps are still to be written.
  void Commit(int64_t step);
  // Forgets what was added since the last step.
  void Drop();
  // Waits until every step is written.
  void Flush();
  // Writes what is left and ends the thread. Idempotent.
  void Close();

  // Rows of the step under way, or of the last one while it has none.
  [[nodiscard]] const std::vector<Row>& Latest(MonitorKind kind) const;
  // The last steps, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<const StepRows>> Ring() const {
    return {ring_.begin(), ring_.end()};
  }
  // Counts steps that were ended: rows of an earlier one are told by it.
  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  // Alerts and what went wrong since the last call, for the log.
  std::vector<std::string> TakeMessages();
  std::optional<std::string> TakeProblem();

 private:
  using Rows = std::shared_ptr<const StepRows>;

  void Run();
  void WriteOut(const StepRows& rows);
  void Count(const StepRows& rows, uint64_t alerts);

  std::unique_ptr<StepSink> sink_;
  Alerts alerts_;
  std::string alert_path_;
  std::unique_ptr<RuleWatch> rules_;
  std::optional<MonitorProgress> progress_;
  MonitorCounts counts_;  // of the thread that writes
  size_t ring_size_;
  std::map<std::tuple<std::string, int32_t, uint32_t>, WatchedName> names_;
  std::shared_ptr<StepRows> current_ = std::make_shared<StepRows>();
  uint32_t calls_ = 0;
  uint64_t epoch_ = 0;
  std::deque<Rows> ring_;
  Rows last_;

  mutable std::mutex mutex_;  // of what follows
  OfProcess<std::condition_variable> changed_;
  std::deque<Rows> waiting_;
  bool is_writing_ = false, is_closing_ = false;
  std::vector<std::string> messages_;
  std::optional<std::string> problem_;
  OfProcess<std::thread> thread_;
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_MONITOR_H_
