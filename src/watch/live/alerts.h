// Alerts of a monitor: values that its rules do not expect, told while the training runs.

#ifndef PLUMBLINE_WATCH_LIVE_ALERTS_H_
#define PLUMBLINE_WATCH_LIVE_ALERTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "watch/live/monitor_config.h"
#include "watch/live/step_rows.h"

namespace plumbline::watch {

// Where an alert came from, as anomaly.json has it.
struct AlertPlace {
  int64_t rank = 0;
  int64_t pp_stage = 0;              // rank within the group of the pipeline
  std::vector<int64_t> group_mates;  // global ranks of that group
};

// Looks at the steps in their order:
//   AnomalyTurbulence  x > b (1 + t) where b > 0, else x < b (1 + t); b is the mean of all earlier
//                      values of this row and op, NaN and infinite ones left out; the first value
//                      is its own. With MonitorConfig::is_latest |x| > h (1 + t), for norm and mean
//                      alone, where h <- 0.99 h + 0.01 |x| behind each value
//   AnomalyNan         the first of NaN or infinite elements in a row of steps, rule or not;
//                      |x| > threshold where the rule has one
// Every rule looks at every op that is a number. Single-threaded.
class Alerts {
 public:
  Alerts(const MonitorConfig& config, AlertPlace place);

  // One line for each alert of the step, without the colour.
  std::vector<std::string> Check(const StepRows& rows);
  // anomaly.json with everything so far; upstream's layout with "ops", "values" and "histories" of
  // all that was found in a row.
  [[nodiscard]] json::Value Document() const;
  // How many rows of steps had one.
  [[nodiscard]] size_t size() const { return found_.size(); }

 private:
  struct History {
    double mean = 0;
    uint64_t values = 0;
    bool was_bad = false;  // NaN or infinite the last time
  };
  struct Finding {
    std::string tag, message;
    int64_t step = 0, micro_step = 0, vpp_stage = 0;
    uint32_t call = 0;
    std::vector<std::string> ops;
    std::vector<double> values, histories;
  };
  // Name, micro step, kind and op.
  using Key = std::tuple<const WatchedName*, int32_t, size_t, size_t>;

  void CheckRow(MonitorKind kind, const Row& row, int64_t step, std::vector<std::string>* lines);
  // The name of the rule that `value` breaks, or none.
  std::string_view Broken(Op op, const TensorValues& values, const History& history) const;
  [[nodiscard]] bool IsTurbulent(Op op, double value, double limit) const;
  void Remember(double value, History& history) const;

  std::vector<AlertRule> rules_;
  bool is_latest_;
  std::vector<Op> ops_;
  AlertPlace place_;
  std::map<Key, History> histories_;
  std::vector<Finding> found_;
};

// anomaly.json of a process: several optimizers, each with its alerts, share one. Any thread.
// Begins it without alerts, unless a monitor of this process has begun it before. kIo.
Status BeginAlertFile(const std::string& path);
// Writes what all have found; `alerts` is what `owner` has found by now. kIo.
Status WriteAlertFile(const std::string& path, const void* owner, json::Value alerts);
// `owner` has ended: what it found stays.
void EndAlertFile(const std::string& path, const void* owner);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_ALERTS_H_
