// What a training monitor watches, as rows of the trend viewer's database.

#ifndef PLUMBLINE_FORMATS_TABLE_MONITOR_TREND_H_
#define PLUMBLINE_FORMATS_TABLE_MONITOR_TREND_H_

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/sqlite/trend_db.h"

namespace plumbline::monitor_trend {

// As upstream's converter names it.
inline constexpr std::string_view kDatabase = "monitor_data.trend.db";

// In the order of their numbers, and of the columns of the viewer.
inline constexpr std::array<std::string_view, 9> kMetrics = {
    "actv",         "actv_grad",    "exp_avg",       "exp_avg_sq", "grad_unreduced",
    "grad_reduced", "param_origin", "param_updated", "other"};
inline constexpr std::array<std::string_view, 14> kStatistics = {
    "norm",        "min", "max",         "zeros", "nans",     "mean",  "entropy",
    "softmax_max", "sr",  "kernel_norm", "std_x", "jacobian", "proxy", "token_similarity"};

// The metric of a kind of file (formats/table/monitor_kinds.h), or empty. 1.2.2 writes parameters
// before the step alone, as later releases name them.
std::string_view MetricOf(std::string_view kind);
bool IsStatistic(std::string_view name);

// Metric -> its statistics.
using Contents = std::map<std::string, std::set<std::string, std::less<>>, std::less<>>;
// Of those metrics, with the statistics that have a column, in the order above.
trend_db::Form FormOf(const Contents& contents);

// Of the parts of the target's name: "layers.3" (a layer), any other that is no number (a module).
std::vector<trend_db::Tag> TagsOf(const trend_db::Row& row);

}  // namespace plumbline::monitor_trend

#endif  // PLUMBLINE_FORMATS_TABLE_MONITOR_TREND_H_
