#include "measure/recorded_statistics.h"

#include <array>
#include <variant>

#include "kernels/tensor_scan.h"
#include "record/tensor_stats.h"

namespace plumbline::measure {
namespace {

Recorded ToRecorded(const Statistic& statistic) {
  return std::visit([](const auto& value) { return Recorded(value); }, statistic);
}

}  // namespace

void TakeStatistics(const TensorView& view, Item& item) {
  const kernels::TensorScan scan = kernels::ScanTensor(view, {});
  const TensorStats stats = ComputeStats(view.dtype, scan.moments, view.sizes.empty());
  item.statistics = {ToRecorded(stats.max), ToRecorded(stats.min), ToRecorded(stats.mean),
                     ToRecorded(stats.norm)};
  std::array<Recorded, 2> finite;
  if (stats.max_finite) finite[0] = ToRecorded(*stats.max_finite);
  if (stats.min_finite) finite[1] = ToRecorded(*stats.min_finite);
  if (stats.max_finite || stats.min_finite) item.finite_extremes = finite;
}

}  // namespace plumbline::measure
