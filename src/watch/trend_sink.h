// The values of a training in the trend viewer's database, step by step.

#ifndef PLUMBLINE_WATCH_TREND_SINK_H_
#define PLUMBLINE_WATCH_TREND_SINK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "watch/live/monitor.h"

namespace plumbline::watch {

// "monitor_data.trend.db" in `directory` (docs/formats/trend_db.md), for rank `rank`. A step is one
// transaction: a killed process leaves whole ones. Micro steps are targets of their own, the step
// of a row is that of the training. kIo.
Result<std::unique_ptr<StepSink>> NewTrendSink(const std::string& directory,
                                               const MonitorConfig& config, int64_t rank);

// Removes the rows of steps from `step` on from the database of a directory, if there is one. kIo.
Status TrimTrend(const std::string& directory, int64_t rank, int64_t step);

inline constexpr TrendModule kTrendModule = {&NewTrendSink, &TrimTrend};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_TREND_SINK_H_
