// The metrics of upstream's report on compiled graphs (docs/reference/torchair.md).

#ifndef PLUMBLINE_MEASURE_TORCHAIR_METRICS_H_
#define PLUMBLINE_MEASURE_TORCHAIR_METRICS_H_

#include <array>
#include <string_view>

#include "plumbline/tensor.h"

namespace plumbline::measure {

inline constexpr std::array<std::string_view, 7> kTorchairMetricNames = {
    "cosine_similarity",   "max_relative_error", "mean_relative_error",        "max_absolute_error",
    "mean_absolute_error", "kl_divergence",      "relative_euclidean_distance"};

// In the order of the names. Errors count only where |golden| is above 2^-23: a difference at a
// golden 0 shows in none of the four. Elements are taken as float32.
using TorchairMetrics = std::array<double, kTorchairMetricNames.size()>;

// Of two contiguous tensors of equally many elements, at least one, none NaN or Inf.
TorchairMetrics MeasureAsTorchair(const TensorView& target, const TensorView& golden);

struct FloatStatistics {
  double max = 0, min = 0, mean = 0;  // NaN where an element is
  bool all_finite = true;
};
// Of a contiguous tensor with elements, taken as float32.
FloatStatistics StatisticsAsFloat(const TensorView& view);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_TORCHAIR_METRICS_H_
