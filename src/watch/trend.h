// `plumb trend`: what a training monitor wrote, as curves over the steps on one page.

#ifndef PLUMBLINE_WATCH_TREND_H_
#define PLUMBLINE_WATCH_TREND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// One statistic of one tensor. Per point of the page, over all ranks and the steps that the point
// stands for; NaN: nothing finite was seen.
struct TrendCurve {
  std::vector<float> low, high;
};

// One watched tensor.
struct TrendSeries {
  std::string kind;  // of its files: "actv", "grad_reduced", ...
  std::string name;
  int64_t vpp_stage = 0, micro_step = 0;
  std::vector<TrendCurve> curves;    // one per statistic; without points where it has none
  std::vector<bool> has_nonfinite;   // per point: some rank had NaN or infinity
  std::vector<int64_t> alert_steps;  // ascending
  // The largest factor by which a value of the first statistic is, on one rank, above the median of
  // up to 16 values before; 0: nothing to compare with, or a median of 0.
  double jump = 0;
  int64_t jump_step = 0, jump_rank = 0;
  double jump_from = 0, jump_to = 0;
};

// The first value that is no number, by step, then forward before backward before the optimizer.
struct FirstNonfinite {
  int64_t step = 0, rank = 0;
  std::string kind, name, what;  // "12 NaN", "max inf"
};

struct Trend {
  std::string data;
  std::vector<std::string> statistics;
  std::vector<int64_t> point_steps;  // the first step of each point, ascending
  int64_t last_step = 0;
  uint64_t steps = 0, ranks = 0, alerts = 0;
  // The most suspicious first: with values that are no numbers, with alerts, by `jump`.
  std::vector<TrendSeries> series;
  std::optional<FirstNonfinite> first_nonfinite;
  // Tensors that are NaN from their first row on where the monitor did not count NaN: there was no
  // tensor (the gradient of a first layer), or it was NaN from the begin.
  uint64_t uncertain = 0;
  std::string uncertain_example;
  std::string first_alert;  // its message; empty: none
  uint64_t left_out = 0;    // rows from the first step of a later directory of their rank on
  std::vector<std::string> warnings;
  std::string damage;  // " in what could be read (...)"; empty: all could be
};

struct TrendOptions {
  // Called before each csv file, each of which is read twice.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

// Reads the directories of a monitor in `data` (load/monitor_files.h), and alerts in
// `data`/anomaly_detected. Of a training that was resumed the later directory of a rank counts from
// its first step on. Memory: the points of the curves, at most kTrendPoints over all curves where
// each has the fewest. kNotFound (no directory, no row), kCorrupt, kIo.
Result<Trend> ReadTrend(const std::string& data, const TrendOptions& options);

// Points that one curve has at most and at least, and all of them have together.
inline constexpr size_t kMostCurvePoints = 300, kFewestCurvePoints = 30, kTrendPoints = 400'000;
// Tensors that a page shows at most.
inline constexpr size_t kMostTrendSeries = 1000;

// The answer in a few lines; the first one says whether and where numbers went wrong.
std::string TrendText(const Trend& trend);

// One page that needs nothing else. kIo.
Status WriteTrendPage(const Trend& trend, const std::string& path);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_TREND_H_
