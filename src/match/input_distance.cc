#include "match/input_distance.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "record/recorded_number.h"

namespace plumbline::match {
namespace {

bool IsInput(const Item& item) { return item.is_tensor && item.role == ItemRole::kInput; }

// Relative difference of two items as far as their statistics show it; infinity when they do not.
double DistanceOf(const Item& a, const Item& b) {
  if (a.shape_text != b.shape_text) return INFINITY;
  if (a.has_recorded_digest && b.has_recorded_digest && a.digest == b.digest) return 0;
  std::array<double, 4> x{}, y{};
  for (size_t i = 0; i < x.size(); ++i) {
    const std::optional<double> first = NumberOf(a.statistics[i]);
    const std::optional<double> second = NumberOf(b.statistics[i]);
    if (!first || !second || !std::isfinite(*first - *second)) return INFINITY;
    x[i] = *first;
    y[i] = *second;
  }
  const double scale = std::max(std::abs(y[0]), std::abs(y[1]));
  if (x == y) return 0;
  // Not the mean: near zero it is rounding alone.
  double distance = std::max(std::abs(x[0] - y[0]), std::abs(x[1] - y[1])) / scale;
  distance = std::max(distance, std::abs(x[3] - y[3]) / y[3]);
  return std::isnan(distance) ? INFINITY : distance;
}

}  // namespace

double InputDistance(const CallItems& a, const CallItems& b) {
  if (a.items.size() != b.items.size()) return INFINITY;
  double distance = -1;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!IsInput(a.items[i])) continue;
    if (!IsInput(b.items[i])) return INFINITY;
    distance = std::max(distance, DistanceOf(a.items[i], b.items[i]));
  }
  return distance < 0 ? INFINITY : distance;
}

}  // namespace plumbline::match
