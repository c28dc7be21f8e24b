#include "precheck/mindspore_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "measure/tensor_metrics.h"

namespace plumbline::precheck {
namespace {

constexpr double kEpsilon = 1e-8;  // of upstream's formulas
constexpr size_t kBlockOfDoubles = 4096;
constexpr size_t kLanes = 16;

using DoublesBlock = std::array<double, kBlockOfDoubles>;

// Calls `use(bench, tested, count)` with one block of both sides as doubles after the other.
template <class Use>
void VisitBlocks(const TensorView& bench, const TensorView& tested, const Use& use) {
  DoublesBlock b;
  DoublesBlock t;
  const auto count = static_cast<size_t>(bench.element_count());
  const size_t bench_size = InfoOf(bench.dtype).size_bytes;
  const size_t tested_size = InfoOf(tested.dtype).size_bytes;
  for (size_t at = 0; at < count; at += kBlockOfDoubles) {
    const size_t here = std::min(kBlockOfDoubles, count - at);
    measure::Widen(bench.dtype, bench.data + at * bench_size, here, b.data());
    measure::Widen(tested.dtype, tested.data + at * tested_size, here, t.data());
    use(b, t, here);
  }
}

// Sums by lane, so that the order does not depend on how wide the processor's registers are.
struct Products {
  std::array<double, kLanes> dot{}, bench{}, tested{};

  void Add(const DoublesBlock& b, const DoublesBlock& t, size_t count, double bench_scale,
           double tested_scale) {
    for (size_t i = 0; i < count; ++i) {
      const double x = b[i] * bench_scale, y = t[i] * tested_scale;
      dot[i % kLanes] += x * y;
      bench[i % kLanes] += x * x;
      tested[i % kLanes] += y * y;
    }
  }
  [[nodiscard]] static double Sum(const std::array<double, kLanes>& lanes) {
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
  }
  // `epsilon` is scaled as the products are.
  [[nodiscard]] double Cosine(double epsilon) const {
    return (epsilon + Sum(dot)) / (epsilon + std::sqrt(Sum(bench)) * std::sqrt(Sum(tested)));
  }
};

// A power of two by which squares of numbers up to `magnitude` stay far from the limits of double;
// 1 for all that occurs in practice.
double ScaleFor(double magnitude) {
  constexpr int kSafeExponent = 400;
  const int exponent = magnitude > 0 ? std::ilogb(magnitude) : 0;
  return exponent > kSafeExponent ? std::ldexp(1.0, -exponent) : 1;
}

void AddNonFinite(double b, double t, MindSporeMetrics& metrics, bool& has_nan) {
  ++metrics.nonfinite_count;
  const bool is_same = (std::isnan(b) && std::isnan(t)) || b == t;
  if (!is_same) ++metrics.nonfinite_differs;
  // Infinity minus infinity is NaN, as upstream's difference is.
  const double error = std::abs(b - t);
  if (std::isnan(error)) has_nan = true;
  if (error > metrics.max_abs_error) metrics.max_abs_error = error;
}

void AddFinite(double b, double t, MindSporeMetrics& metrics) {
  const double error = std::abs(b - t), magnitude = std::abs(b);
  metrics.finite_max_abs = std::max(metrics.finite_max_abs, error);
  metrics.bench_magnitude = std::max(metrics.bench_magnitude, magnitude);
  metrics.tested_magnitude = std::max(metrics.tested_magnitude, std::abs(t));
  const double relative = error / (magnitude == 0 ? kEpsilon : magnitude);
  metrics.max_rel_error = std::max(metrics.max_rel_error, relative);
}

// float64 rounds integers above 2^53, and two that differ may become one number.
double ExactMaxAbs(const TensorView& bench, const TensorView& tested) {
  uint64_t largest = 0;
  const int64_t count = bench.element_count();
  for (int64_t i = 0; i < count; ++i) {
    int64_t b = 0;
    int64_t t = 0;
    std::memcpy(&b, bench.data + i * static_cast<int64_t>(sizeof(b)), sizeof(b));
    std::memcpy(&t, tested.data + i * static_cast<int64_t>(sizeof(t)), sizeof(t));
    const auto difference = static_cast<uint64_t>(b) - static_cast<uint64_t>(t);
    largest = std::max(largest, b >= t ? difference : uint64_t{0} - difference);
  }
  return static_cast<double>(largest);
}

}  // namespace

MindSporeMetrics MeasureMindSpore(const TensorView& bench, const TensorView& tested) {
  MindSporeMetrics metrics;
  Products products;
  bool has_nan = false;
  VisitBlocks(bench, tested, [&](const DoublesBlock& b, const DoublesBlock& t, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (std::isfinite(b[i]) && std::isfinite(t[i])) {
        AddFinite(b[i], t[i], metrics);
      } else {
        AddNonFinite(b[i], t[i], metrics, has_nan);
      }
    }
    products.Add(b, t, count, 1, 1);
  });
  metrics.max_abs_error = std::max(metrics.max_abs_error, metrics.finite_max_abs);
  if (has_nan) metrics.max_abs_error = std::nan("");
  // Upstream divides by an infinite or a NaN benchmark, which is 0 or NaN; nothing follows from it.
  if (metrics.nonfinite_count > 0) metrics.max_rel_error = std::nan("");
  metrics.cosine = products.Cosine(kEpsilon);
  const double bench_scale = ScaleFor(metrics.bench_magnitude);
  const double tested_scale = ScaleFor(metrics.tested_magnitude);
  if (metrics.nonfinite_count == 0 && (bench_scale != 1 || tested_scale != 1)) {
    Products scaled;
    VisitBlocks(bench, tested, [&](const DoublesBlock& b, const DoublesBlock& t, size_t count) {
      scaled.Add(b, t, count, bench_scale, tested_scale);
    });
    metrics.cosine = scaled.Cosine(kEpsilon * bench_scale * tested_scale);
  }
  if (bench.dtype == DType::kInt64 && tested.dtype == DType::kInt64) {
    metrics.max_abs_error = ExactMaxAbs(bench, tested);
  }
  return metrics;
}

}  // namespace plumbline::precheck
