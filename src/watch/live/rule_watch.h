// The rules of a configuration ("watch") held against the steps of a training.

#ifndef PLUMBLINE_WATCH_LIVE_RULE_WATCH_H_
#define PLUMBLINE_WATCH_LIVE_RULE_WATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "watch/live/monitor_config.h"
#include "watch/live/step_rows.h"
#include "watch/rules/step_watch.h"

namespace plumbline::watch {

// Where the hits of all steps are, beside the files of a monitor: the table of `plumb watch -o`.
inline constexpr std::string_view kHitsFile = "watch.csv";

struct RuleWatchPlace {
  std::string directory;  // of the monitor's files; empty: there are none
  int64_t rank = 0;
  bool goes_on = false;  // there are earlier steps: no step to come is the first one
};

// Judges what the csv files have, the statistics in "ops", to full precision: a rule that hits on
// the files hits here. But where all of them are NaN, a training knows whether there was a tensor.
// Single-threaded.
class RuleWatch {
 public:
  RuleWatch(const MonitorConfig& config, RuleWatchPlace place);

  // What rules cannot judge from what is recorded, and what to record; a line for each such rule.
  [[nodiscard]] std::vector<std::string> Limits() const;
  // Appends a line for each hit, the first ones of a step; writes all of them. kIo.
  Status Look(const StepRows& rows, std::vector<std::string>* lines);
  [[nodiscard]] uint64_t hits() const;
  // A line for each rule with what it came to; none before a step.
  [[nodiscard]] std::vector<std::string> Summary() const;

 private:
  [[nodiscard]] std::vector<WatchedTensor> TensorsOf(const StepRows& rows);
  void AddTensors(MonitorKind kind, const std::vector<Row>& rows,
                  std::vector<WatchedTensor>& tensors) const;
  void Tell(const std::vector<WatchRow>& hits, std::vector<std::string>* lines);
  [[nodiscard]] Status Write(const std::vector<WatchRow>& hits);
  [[nodiscard]] std::string LimitOf(const Rule& rule) const;

  const MonitorConfig config_;
  RuleWatchPlace place_;
  StepWatch watch_;
  TensorKinds kinds_ = 0;  // that rules are for
  std::set<std::string, std::less<>> trained_;
  std::vector<RuleCounts> counts_;
  uint64_t steps_ = 0, told_ = 0;
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_RULE_WATCH_H_
