#include "measure/torchair_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/kernel_table.h"

namespace plumbline::measure {
namespace {

constexpr size_t kBlock = 4096;  // elements widened at a time
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

size_t CountOf(const TensorView& view) { return static_cast<size_t>(view.element_count()); }

// Elements from `first` on, at most kBlock of them, as float32.
class Widened {
 public:
  Widened(const TensorView& view, size_t first) : count_(std::min(kBlock, CountOf(view) - first)) {
    const std::byte* data = view.data + first * InfoOf(view.dtype).size_bytes;
    kernels::ActiveTable().to_float(view.dtype, data, count_, values_.data());
  }
  [[nodiscard]] size_t size() const { return count_; }
  double operator[](size_t i) const { return values_[i]; }

 private:
  size_t count_;
  std::array<float, kBlock> values_;
};

struct Sums {
  double dot = 0, target = 0, golden = 0, difference = 0;  // squares
  double max_relative = 0, relative = 0, max_absolute = 0, absolute = 0;
  double target_max = -std::numeric_limits<double>::infinity();
  double golden_max = -std::numeric_limits<double>::infinity();
  void Add(double m, double g) {
    dot += m * g;
    target += m * m;
    golden += g * g;
    difference += (m - g) * (m - g);
    target_max = std::max(target_max, m);
    golden_max = std::max(golden_max, g);
    if (std::abs(g) <= kEpsilon) return;
    const double error = std::abs(m - g), quotient = std::abs(m / g - 1);
    max_relative = std::max(max_relative, quotient);
    relative += quotient;
    max_absolute = std::max(max_absolute, error);
    absolute += error;
  }
};

// sum p (log p - log q) of the softmax of both; the largest element goes off first, so that no
// power overflows.
double KlDivergence(const TensorView& target, const TensorView& golden, const Sums& sums) {
  double target_powers = 0, golden_powers = 0;
  double weighted = 0;  // sum exp(g) * (g - m), both without their largest
  for (size_t first = 0; first < CountOf(golden); first += kBlock) {
    const Widened m(target, first), g(golden, first);
    for (size_t i = 0; i < g.size(); ++i) {
      const double a = m[i] - sums.target_max, b = g[i] - sums.golden_max;
      target_powers += std::exp(a);
      golden_powers += std::exp(b);
      weighted += std::exp(b) * (b - a);
    }
  }
  const double divergence =
      weighted / golden_powers - std::log(golden_powers) + std::log(target_powers);
  return std::max(divergence, 0.0);
}

double Cosine(const Sums& sums) {
  if (sums.target == 0 && sums.golden == 0) return 1;
  if (sums.target == 0 || sums.golden == 0) return 0;
  constexpr double kTenDigits = 1e10;
  const double cosine = sums.dot / (std::sqrt(sums.target) * std::sqrt(sums.golden));
  return std::round(cosine * kTenDigits) / kTenDigits;
}

}  // namespace

TorchairMetrics MeasureAsTorchair(const TensorView& target, const TensorView& golden) {
  Sums sums;
  const size_t count = CountOf(golden);
  for (size_t first = 0; first < count; first += kBlock) {
    const Widened m(target, first), g(golden, first);
    for (size_t i = 0; i < g.size(); ++i) sums.Add(m[i], g[i]);
  }
  const auto number = static_cast<double>(count);
  const double norm = std::sqrt(sums.golden);
  return {Cosine(sums),
          sums.max_relative,
          sums.relative / number,
          sums.max_absolute,
          sums.absolute / number,
          KlDivergence(target, golden, sums),
          norm <= kEpsilon ? 0 : std::sqrt(sums.difference) / norm};
}

FloatStatistics StatisticsAsFloat(const TensorView& view) {
  FloatStatistics statistics;
  statistics.max = -std::numeric_limits<double>::infinity();
  statistics.min = -statistics.max;
  bool has_nan = false;
  double sum = 0;
  for (size_t first = 0; first < CountOf(view); first += kBlock) {
    const Widened values(view, first);
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      statistics.max = std::max(statistics.max, value);
      statistics.min = std::min(statistics.min, value);
      statistics.all_finite = statistics.all_finite && std::isfinite(value);
      has_nan = has_nan || std::isnan(value);
      sum += value;
    }
  }
  statistics.mean = static_cast<float>(sum / static_cast<double>(CountOf(view)));
  if (has_nan) statistics.max = statistics.min = std::numeric_limits<double>::quiet_NaN();
  return statistics;
}

}  // namespace plumbline::measure
