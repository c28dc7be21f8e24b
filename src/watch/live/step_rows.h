// The values of one step, as the hooks of a training hand them over.

#ifndef PLUMBLINE_WATCH_LIVE_STEP_ROWS_H_
#define PLUMBLINE_WATCH_LIVE_STEP_ROWS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/table/monitor_kinds.h"
#include "plumbline/result.h"
#include "watch/live/adam_update.h"
#include "watch/live/tensor_values.h"

namespace plumbline::watch {

// What is watched; lives as long as the monitor.
struct WatchedName {
  std::string text;
  int32_t vpp_stage = 0;
  // Rows of one group stand together where it came first (activations of one module).
  uint32_t group = 0;
};

struct Row {
  const WatchedName* name = nullptr;
  int32_t micro_step = 0;
  uint32_t call = 0;  // position among all rows of the step
  TensorValues values;
};

// How the optimizer moves a parameter.
struct AdamRow {
  const WatchedName* name = nullptr;
  AdamHistograms histograms;
};

struct StepRows {
  int64_t step = 0;
  std::array<std::vector<Row>, kMonitorKindCount> rows;
  std::vector<AdamRow> adam;

  [[nodiscard]] const std::vector<Row>& of(MonitorKind kind) const {
    return rows[static_cast<size_t>(kind)];
  }
  std::vector<Row>& of(MonitorKind kind) { return rows[static_cast<size_t>(kind)]; }
};

// "0:fc1.weight/rank0/post_grad", as upstream names a row in alerts and TensorBoard. The micro step
// of activations follows their name; communication has no stage.
std::string TagOf(MonitorKind kind, const Row& row, int64_t rank);

// Takes whole steps, ascending, from one thread.
class StepSink {
 public:
  virtual ~StepSink() = default;
  virtual Status Write(const StepRows& rows) = 0;
  virtual Status Close() { return {}; }
  // Written so far; 0 where nobody counts.
  [[nodiscard]] virtual uint64_t bytes() const { return 0; }
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_STEP_ROWS_H_
