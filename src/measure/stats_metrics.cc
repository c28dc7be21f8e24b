#include "measure/stats_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "measure/standards.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
namespace {

constexpr size_t kMax = 0;
constexpr size_t kMin = 1;
constexpr size_t kMean = 2;
constexpr size_t kNorm = 3;

// |a - b| / scale with 0/0 = 0, and infinity where only one side is finite.
double Relative(double a, double b, double scale) {
  if (a == b) return 0;  // also equal infinities
  if (std::isnan(a) && std::isnan(b)) return 0;
  const double difference = std::abs(a - b);
  if (!std::isfinite(difference) || !(scale > 0)) return std::numeric_limits<double>::infinity();
  return difference / scale;
}

}  // namespace

StatisticDifferences CompareStatistics(const std::array<Recorded, 4>& target,
                                       const std::array<Recorded, 4>& golden) {
  StatisticDifferences result;
  for (size_t i = 0; i < target.size(); ++i) {
    const std::optional<double> a = NumberOf(target[i]);
    const std::optional<double> b = NumberOf(golden[i]);
    if (!a || !b) continue;
    const double difference = *a - *b;
    result.difference[i] = difference;
    if (std::isnan(difference)) {
      result.relative_percent[i] = difference;
    } else if (*b == 0) {
      result.relative_percent[i] = Absent::kZeroNorm;
    } else {
      result.relative_percent[i] = std::abs(difference / *b * 100);
    }
  }
  return result;
}

bool BreachesWarningRule(const std::array<Recorded, 4>& target,
                         const std::array<Recorded, 4>& golden) {
  for (size_t i = 0; i < target.size(); ++i) {
    const std::optional<double> a = NumberOf(target[i]);
    const std::optional<double> b = NumberOf(golden[i]);
    if (!a || !b) continue;
    if (std::isfinite(*a) != std::isfinite(*b)) return true;
    const double larger = std::max(std::abs(*a), std::abs(*b));
    if (std::abs(*a - *b) / (larger + kWarningRegulator) > kWarningRatio) return true;
  }
  return false;
}

double StatisticError(const std::array<Recorded, 4>& target, const std::array<Recorded, 4>& golden,
                      int64_t element_count) {
  std::array<std::optional<double>, 4> a;
  std::array<std::optional<double>, 4> b;
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = NumberOf(target[i]);
    b[i] = NumberOf(golden[i]);
  }
  const double magnitude = std::max(std::abs(b[kMax].value_or(0)), std::abs(b[kMin].value_or(0)));
  const double norm = std::abs(b[kNorm].value_or(0));
  const double root_mean_square = std::isfinite(norm) && norm > 0
                                      ? norm / std::sqrt(static_cast<double>(element_count))
                                      : magnitude;
  const std::array<double, 4> scale = {magnitude, magnitude, root_mean_square, norm};
  // Averages over many elements: rounding changes them less than single elements.
  const double average = element_count >= kManyElements ? kAverageWeight : 1;
  const std::array<double, 4> weight = {1, 1, average, average};
  double error = 0;
  for (const size_t i : {kMax, kMin, kMean, kNorm}) {
    if (a[i] && b[i]) error = std::max(error, weight[i] * Relative(*a[i], *b[i], scale[i]));
  }
  return error;
}

}  // namespace plumbline::measure

namespace plumbline {

StatisticDifferences ComparedRow::statistics() const {
  if (!target || !golden) return {};
  return measure::CompareStatistics(target->statistics, golden->statistics);
}

}  // namespace plumbline
