#include "kernels/scaled_squares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "tensor/element_value.h"

namespace plumbline::kernels {
namespace {

// Squares of numbers between these limits are far from both ends of the range, also of those that
// are smaller by as much as counts in a sum, and so are sums of 2^60 of them.
constexpr double kSmall = 0x1p-400, kLarge = 0x1p+480;
constexpr int kStep = 600;  // brings all other numbers between the limits, or near

// The exponent to take out of numbers of which `largest` is the largest.
int ExponentFor(double largest) {
  if (largest > kLarge) return kStep;
  return largest > 0 && largest < kSmall ? -kStep : 0;
}

// A number, or the two parts of a complex one.
using Parts = std::array<double, 2>;

Parts PartsAt(DType dtype, const std::byte* at) {
  return VisitElement(dtype, at, [](auto real, auto... imaginary) {
    return Parts{static_cast<double>(real), (0.0 + ... + static_cast<double>(imaginary))};
  });
}

bool IsFinite(const Parts& parts) { return std::isfinite(parts[0]) && std::isfinite(parts[1]); }

Parts Scaled(const Parts& parts, double factor) { return {parts[0] * factor, parts[1] * factor}; }

double Dot(const Parts& a, const Parts& b) { return a[0] * b[0] + a[1] * b[1]; }

// target - golden, times the factor. Large numbers are made smaller before they are subtracted.
Parts Difference(const Parts& target, const Parts& golden, double factor) {
  if (factor > 1) return Scaled({target[0] - golden[0], target[1] - golden[1]}, factor);
  const Parts t = Scaled(target, factor), g = Scaled(golden, factor);
  return {t[0] - g[0], t[1] - g[1]};
}

// Lanes and blocks as in kernel_table.h.
class Sum {
 public:
  void Add(size_t i, double value) { lanes_[i % kLanes] += value; }
  void EndBlock() {
    for (size_t width = kLanes / 2; width != 0; width /= 2) {
      for (size_t l = 0; l < width; ++l) lanes_[l] += lanes_[l + width];
    }
    total_ += lanes_[0];
    lanes_.fill(0);
  }
  [[nodiscard]] double total() const { return total_; }

 private:
  std::array<double, kLanes> lanes_{};
  double total_ = 0;
};

double NormOf(double squares, int exponent) { return std::ldexp(std::sqrt(squares), exponent); }

}  // namespace

void RescaleSquares(const PairOfRuns& runs, Pairwise* sums) {
  const int target = ExponentFor(sums->target_max), golden = ExponentFor(sums->golden_max),
            difference = ExponentFor(sums->max_abs);
  if (target == 0 && golden == 0 && difference == 0) return;
  const double target_factor = std::ldexp(1.0, -target), golden_factor = std::ldexp(1.0, -golden),
               difference_factor = std::ldexp(1.0, -difference);
  const size_t target_bytes = InfoOf(runs.target_dtype).size_bytes;
  const size_t golden_bytes = InfoOf(runs.golden_dtype).size_bytes;
  const auto* t_data = static_cast<const std::byte*>(runs.target);
  const auto* g_data = static_cast<const std::byte*>(runs.golden);
  Sum dot, target_squares, golden_squares, difference_squares;
  const std::array<Sum*, 4> all{&dot, &target_squares, &golden_squares, &difference_squares};
  for (size_t i = 0; i < runs.count; ++i) {
    if (i != 0 && i % kBlockElements == 0) {
      for (Sum* each : all) each->EndBlock();
    }
    const Parts t = PartsAt(runs.target_dtype, t_data + i * target_bytes);
    const Parts g = PartsAt(runs.golden_dtype, g_data + i * golden_bytes);
    if (!IsFinite(t) || !IsFinite(g)) continue;
    const Parts x = Scaled(t, target_factor), y = Scaled(g, golden_factor);
    const Parts d = Difference(t, g, difference_factor);
    dot.Add(i, Dot(x, y));
    target_squares.Add(i, Dot(x, x));
    golden_squares.Add(i, Dot(y, y));
    difference_squares.Add(i, Dot(d, d));
  }
  for (Sum* each : all) each->EndBlock();
  sums->dot = dot.total();
  sums->target_squares = target_squares.total();
  sums->golden_squares = golden_squares.total();
  sums->difference_squares = difference_squares.total();
  sums->target_exponent = target;
  sums->golden_exponent = golden;
  sums->difference_exponent = difference;
}

double TargetNorm(const Pairwise& sums) {
  return NormOf(sums.target_squares, sums.target_exponent);
}

double GoldenNorm(const Pairwise& sums) {
  return NormOf(sums.golden_squares, sums.golden_exponent);
}

double DifferenceNorm(const Pairwise& sums) {
  return NormOf(sums.difference_squares, sums.difference_exponent);
}

double RelativeNorm(const Pairwise& sums) {
  const double ratio = NormOf(sums.difference_squares / sums.golden_squares,
                              sums.difference_exponent - sums.golden_exponent);
  const bool has_vanished = ratio == 0 && sums.difference_squares > 0;
  return has_vanished ? std::numeric_limits<double>::denorm_min() : ratio;
}

double CosineOf(const Pairwise& sums) {
  return sums.dot / (std::sqrt(sums.target_squares) * std::sqrt(sums.golden_squares));
}

}  // namespace plumbline::kernels
