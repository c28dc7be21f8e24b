#include "measure/cause_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tensor/half.h"

namespace plumbline::measure {
namespace {

// A type with fewer digits.
struct Narrower {
  std::string_view name;
  int significand_bits;   // including the hidden one
  int smallest_exponent;  // of normal values
};

constexpr Narrower kFloat32 = {"float32", 24, -126};
constexpr Narrower kFloat16 = {"float16", 11, -14};
constexpr Narrower kTf32 = {"tf32", 11, -126};
constexpr Narrower kBFloat16 = {"bfloat16", 8, -126};
constexpr Narrower kFloat8 = {"float8_e4m3", 4, -6};
constexpr Narrower kAll[] = {kFloat32, kTf32, kFloat16, kBFloat16, kFloat8};

double RoundoffOf(const Narrower& type) { return std::ldexp(1, -type.significand_bits); }

bool IsRepresentable(double value, const Narrower& type) {
  if (value == 0) return true;
  int exponent = 0;
  std::frexp(value, &exponent);  // 0.5 <= |mantissa| < 1
  const int lowest = std::max(exponent - 1, type.smallest_exponent) - type.significand_bits + 1;
  const double scaled = std::ldexp(value, -lowest);
  return scaled == std::nearbyint(scaled);
}

// Share of the finite, non-zero elements that `type` holds exactly.
double RepresentableShare(std::span<const double> values, const Narrower& type) {
  size_t count = 0;
  size_t fits = 0;
  for (const double value : values) {
    if (!std::isfinite(value) || value == 0) continue;
    ++count;
    if (IsRepresentable(value, type)) ++fits;
  }
  return count > 0 ? static_cast<double>(fits) / static_cast<double>(count) : 1;
}

// What the differences look like.
struct ErrorShape {
  double differing_share = 0;  // of elements that are not equal
  double correlation = 0;      // of difference and golden value
  double sign_balance = 0;     // |positive - negative| / differing
  double peak = 0;             // largest difference over the root mean square
  double largest_relative = 0;
  double relative_rms = 0;  // root mean square of the elements' relative errors
  size_t differing = 0;
};

ErrorShape ShapeOf(const CausePair& pair, const PairSums& sums) {
  ErrorShape shape;
  size_t positive = 0;
  size_t relative_count = 0;
  double relative_squares = 0;
  for (size_t i = 0; i < pair.size(); ++i) {
    const double d = pair.target[i] - pair.golden[i];
    if (!std::isfinite(d)) continue;
    if (d != 0) ++shape.differing;
    if (d > 0) ++positive;
    if (pair.golden[i] == 0) {
      if (d != 0) shape.largest_relative = std::numeric_limits<double>::infinity();
      continue;
    }
    const double relative = std::abs(d / pair.golden[i]);
    shape.largest_relative = std::max(shape.largest_relative, relative);
    relative_squares += relative * relative;
    ++relative_count;
  }
  const auto count = static_cast<double>(std::max<size_t>(sums.count, 1));
  const auto differing = static_cast<double>(shape.differing);
  shape.differing_share = differing / count;
  const double cross = sums.dot - sums.golden_squares;  // <t - g, g>
  const double scale = std::sqrt(sums.difference_squares * sums.golden_squares);
  shape.correlation = scale > 0 ? std::abs(cross) / scale : 1;
  if (differing > 0) {
    shape.sign_balance = std::abs(2 * static_cast<double>(positive) - differing) / differing;
  }
  const double rms = std::sqrt(sums.difference_squares / count);
  shape.peak = rms > 0 ? sums.max_difference / rms : 0;
  shape.relative_rms =
      relative_count > 0 ? std::sqrt(relative_squares / static_cast<double>(relative_count)) : 0;
  return shape;
}

// Dense, of both signs, without relation to the values, without outliers.
bool IsLikeRounding(const ErrorShape& shape) {
  const auto n = static_cast<double>(std::max<size_t>(shape.differing, 1));
  return shape.differing >= 16 && shape.differing_share > 0.3 &&
         shape.correlation < 0.1 + 5 / std::sqrt(n) &&
         shape.sign_balance < 0.1 + 5 / std::sqrt(n) && shape.peak < 20;
}

std::optional<Cause> FindRepresentable(const CausePair& pair, const Narrower& type) {
  constexpr double kNearlyAll = 0.999;
  constexpr double kFew = 0.5;
  if (RepresentableShare(pair.target, type) < kNearlyAll) return std::nullopt;
  const double golden = RepresentableShare(pair.golden, type);
  if (golden > kFew) return std::nullopt;
  return Cause{"narrowed",
               fmt::format("every target value is one of {}, only {:.2g} % of the golden values "
                           "are: rounded to {} and widened again",
                           type.name, 100 * golden, type.name),
               CauseConfidence::kHigh};
}

std::optional<Cause> FindNarrowError(const ErrorShape& shape, const Narrower& type, double error,
                                     bool sums_up) {
  const double u = RoundoffOf(type);
  constexpr double kOneUnit = 2.05;  // a truncated value is off by one unit, two roundoffs
  const bool bounded = shape.largest_relative <= kOneUnit * u && shape.relative_rms >= u / 8;
  const std::string size =
      fmt::format("relative error {:.2g} (largest element {:.2g}), unit roundoff of {} {:.2g}",
                  error, shape.largest_relative, type.name, u);
  if (bounded) {
    return Cause{"narrowed",
                 fmt::format("every element is within one unit of {}: {}", type.name, size),
                 CauseConfidence::kHigh};
  }
  if (error < u / 7 || error > 2 * u) return std::nullopt;
  return Cause{"narrowed",
               fmt::format("the errors are dense, of both signs, unrelated to the values and of "
                           "the size that rounding {} to {} gives: {}",
                           sums_up ? "the operands" : "values", type.name, size),
               CauseConfidence::kMedium};
}

// Steps of signed integers of 8 and 4 bits: the largest value is 127 or 128 (7 or 8) of them.
constexpr double kIntegerLevels[] = {127, 128, 7, 8};

// Whether `values` are whole multiples of a step, at most `levels` of them, and nearly every
// multiple is exact to the roundoff of the type that holds them.
bool IsOnGrid(std::span<const double> values, double levels, double roundoff) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  if (!(largest > 0) || !std::isfinite(largest)) return false;
  const double step = largest / levels;
  return std::all_of(values.begin(), values.end(), [&](double value) {
    const double multiple = value / step;
    return std::abs(multiple - std::nearbyint(multiple)) <= 4 * levels * roundoff;
  });
}

// Rounded to integers of a few bits with one scale for all, or one per row, and widened again.
std::optional<Cause> FindGrid(const CausePair& pair) {
  constexpr size_t kFewestPerRow = 16;
  const auto rows = static_cast<size_t>(pair.shape.empty() ? 1 : pair.shape[0]);
  const bool has_rows = rows > 1 && pair.size() / rows >= kFewestPerRow;
  for (const double levels : kIntegerLevels) {
    // Too coarse a type has all its values on a grid.
    if (!(4 * levels * pair.roundoff < 0.05)) continue;
    for (const size_t parts : {size_t{1}, rows}) {
      if (parts > 1 && !has_rows) continue;
      const size_t length = pair.size() / parts;
      const auto on_grid = [&](std::span<const double> values) {
        size_t fits = 0;
        for (size_t i = 0; i < parts; ++i) {
          if (IsOnGrid(values.subspan(i * length, length), levels, pair.roundoff)) ++fits;
        }
        return fits;
      };
      if (on_grid(pair.target) < parts || 2 * on_grid(pair.golden) > parts) continue;
      return Cause{"narrowed",
                   fmt::format("the target values are whole multiples of one step{}, at most {:g} "
                               "of them: rounded to {}-bit integers and widened again",
                               parts > 1 ? " per row" : "", levels, levels > 8 ? 8 : 4),
                   CauseConfidence::kHigh};
    }
  }
  return std::nullopt;
}

// Values that nobody computed: bounded by the unit of a narrower type, or plainly other ones.
std::optional<Cause> FindOtherVersion(const CausePair& pair, const PairSums& sums,
                                      const ErrorShape& shape) {
  for (const Narrower& type : kAll) {
    if (RoundoffOf(type) <= pair.roundoff) continue;
    auto cause = FindNarrowError(shape, type, sums.error(), false);
    if (cause && cause->confidence == CauseConfidence::kHigh) return cause;
  }
  if (shape.differing_share < 0.3 || !IsLikeRounding(shape)) return std::nullopt;
  return Cause{"stale",
               fmt::format("small dense changes of both signs, unrelated to the values and not of "
                           "the size of a unit in the last place (relative error {:.2g}): another "
                           "version of the same values",
                           sums.error()),
               CauseConfidence::kLow};
}

struct ValueShape {
  double mean = 0, deviation = 0, zero_share = 0;
};

ValueShape ValueShapeOf(std::span<const double> values) {
  ValueShape shape;
  double sum = 0;
  double squares = 0;
  size_t zeros = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    if (value == 0) ++zeros;
  }
  const auto n = static_cast<double>(values.size());
  shape.mean = sum / n;
  shape.deviation = std::sqrt(std::max(0.0, squares / n - shape.mean * shape.mean));
  shape.zero_share = static_cast<double>(zeros) / n;
  return shape;
}

// Dropout on one side: `dropped` is `whole` with zeros and scaled survivors.
std::optional<Cause> FindDropout(const CausePair& pair, bool of_target) {
  const Doubles& dropped = of_target ? pair.target : pair.golden;
  const Doubles& whole = of_target ? pair.golden : pair.target;
  size_t candidates = 0;
  size_t zeros = 0;
  double dot = 0;
  double squares = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == 0) continue;
    ++candidates;
    if (dropped[i] == 0) {
      ++zeros;
      continue;
    }
    dot += dropped[i] * whole[i];
    squares += whole[i] * whole[i];
  }
  if (candidates < 16 || zeros < 2 || !(squares > 0)) return std::nullopt;
  const double rate = static_cast<double>(zeros) / static_cast<double>(candidates);
  const double factor = dot / squares;
  double left = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == 0 || dropped[i] == 0) continue;
    left += (dropped[i] - factor * whole[i]) * (dropped[i] - factor * whole[i]);
  }
  const double spread = std::sqrt(rate * (1 - rate) / static_cast<double>(candidates));
  const bool fits = std::sqrt(left / squares) <= std::max(1e-4, pair.tolerance) &&
                    factor - 1 > rate / 2 &&  // else a few zeros beside what was left alone
                    std::abs(1 - 1 / factor - rate) <= 5 * spread + 0.005;
  if (!fits) return std::nullopt;
  return Cause{"random",
               fmt::format("{} of {} elements are zero in the {} only and the others are scaled by "
                           "{:.6g}: dropout with p = {:.4g}",
                           zeros, candidates, of_target ? "target" : "golden tensor", factor,
                           1 - 1 / factor),
               CauseConfidence::kHigh};
}

// Both sides drop, at other places: what survives on both sides is equal.
std::optional<Cause> FindOtherMask(const CausePair& pair, const PairSums& sums) {
  size_t target_only = 0;
  size_t golden_only = 0;
  size_t both = 0;
  for (size_t i = 0; i < pair.size(); ++i) {
    const double t = pair.target[i];
    const double g = pair.golden[i];
    if (t == 0 && g == 0) continue;
    if (t == 0) {
      ++target_only;
    } else if (g == 0) {
      ++golden_only;
    } else if (Agree(t, g, ElementTolerance(pair, sums, i))) {
      ++both;
    } else {
      return std::nullopt;
    }
  }
  const auto a = static_cast<double>(target_only);
  const auto b = static_cast<double>(golden_only);
  // Zeros on one side only are no mask of the same rate, however few they are.
  const bool is_one_sided = 8 * std::min(a, b) < a + b;
  if (a + b < 8 || both < 2 || is_one_sided || std::abs(a - b) > 5 * std::sqrt(a + b))
    return std::nullopt;
  return Cause{"random",
               fmt::format("{} elements are zero in the target only, {} in the golden tensor only, "
                           "{} are equal: a random mask of the same rate, drawn differently",
                           target_only, golden_only, both),
               CauseConfidence::kHigh};
}

}  // namespace

std::optional<Cause> FindPrecision(const CausePair& pair, const PairSums& sums, Making making) {
  if (sums.nonfinite_differs > 0 || sums.count < 16 || !(pair.roundoff > 0)) return std::nullopt;
  const double error = sums.error();
  constexpr double kLargest = 0.3;
  if (error > kLargest) return std::nullopt;
  for (const Narrower& type : {kFloat8, kBFloat16, kFloat16, kTf32, kFloat32}) {
    if (RoundoffOf(type) <= pair.roundoff) continue;
    if (auto cause = FindRepresentable(pair, type)) return cause;
  }
  if (auto cause = FindGrid(pair)) return cause;
  const ErrorShape shape = ShapeOf(pair, sums);
  if (making == Making::kSource) return FindOtherVersion(pair, sums, shape);
  if (!IsLikeRounding(shape)) return std::nullopt;
  const bool sums_up = making == Making::kSum;
  // Nobody rounds the operands of a product that is in 16 bits already; its sum is the suspect.
  constexpr double kHalfRoundoff = 1e-4;
  const bool is_half_sum = sums_up && pair.roundoff > kHalfRoundoff;
  for (const Narrower& type : kAll) {
    if (RoundoffOf(type) <= pair.roundoff || is_half_sum) continue;
    if (auto cause = FindNarrowError(shape, type, error, sums_up)) return cause;
  }
  constexpr double kLargestOfSums = 0.1;
  if (!sums_up || error > kLargestOfSums) return std::nullopt;
  return Cause{"accumulation",
               fmt::format("the errors are dense, of both signs and unrelated to the values: "
                           "another order or a narrower accumulator of a sum (relative error "
                           "{:.2g}, unit roundoff {:.2g})",
                           error, pair.roundoff),
               CauseConfidence::kMedium};
}

std::optional<Cause> FindRandom(const CausePair& pair, const PairSums& sums) {
  if (sums.count != pair.size() || pair.size() < 16) return std::nullopt;
  for (const bool of_target : {true, false}) {
    if (auto cause = FindDropout(pair, of_target)) return cause;
  }
  if (auto cause = FindOtherMask(pair, sums)) return cause;
  if (2 * sums.differing < sums.count) return std::nullopt;  // other numbers differ everywhere
  const ValueShape target = ValueShapeOf(pair.target);
  const ValueShape golden = ValueShapeOf(pair.golden);
  const auto n = static_cast<double>(pair.size());
  const double deviation = std::max(target.deviation, golden.deviation);
  if (!(deviation > 0)) return std::nullopt;
  const double covariance = sums.dot / n - target.mean * golden.mean;
  const double correlation = covariance / (target.deviation * golden.deviation);
  const double slack = 5 / std::sqrt(n);
  const bool same_kind =
      std::abs(target.mean - golden.mean) <= deviation * slack * 1.5 &&
      std::abs(target.deviation - golden.deviation) <= deviation * (0.05 + slack) &&
      std::abs(target.zero_share - golden.zero_share) <= 0.02 + slack;
  if (!same_kind || !(std::abs(correlation) <= 0.05 + slack)) return std::nullopt;
  return Cause{
      "random",
      fmt::format("the sides are uncorrelated ({:.2g}) but alike: mean {:.4g} (golden "
                  "{:.4g}), deviation {:.4g} (golden {:.4g})",
                  correlation, target.mean, golden.mean, target.deviation, golden.deviation),
      CauseConfidence::kMedium};
}

}  // namespace plumbline::measure
