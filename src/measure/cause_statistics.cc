#include "measure/cause_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/cause_arithmetic.h"
#include "measure/cause_nonfinite.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
namespace {

// The four numbers of one side.
struct Four {
  double max = 0, min = 0, mean = 0, norm = 0;
};

std::optional<Four> FourOf(const Item& item) {
  std::array<double, 4> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<double> value = NumberOf(item.statistics[i]);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  return Four{values[0], values[1], values[2], values[3]};
}

bool IsFinite(const Four& four) {
  return std::isfinite(four.max) && std::isfinite(four.min) && std::isfinite(four.mean) &&
         std::isfinite(four.norm);
}

struct Sides {
  Four target, golden;
  double count = 0;
  double tolerance = 0;

  [[nodiscard]] bool Near(double a, double b, double scale) const {
    return std::abs(a - b) <= tolerance * scale;
  }
};

std::optional<Cause> FindFactor(const Sides& sides, const Shape& shape) {
  const Four& t = sides.target;
  const Four& g = sides.golden;
  if (!(g.norm > 0) || !(t.norm > 0)) return std::nullopt;
  const double size = t.norm / g.norm;
  const double largest = std::max(std::abs(t.max), std::abs(t.min));
  const double root = t.norm / std::sqrt(std::max(sides.count, 1.0));
  for (const double factor : {size, -size}) {
    const double max = factor * (factor > 0 ? g.max : g.min);
    const double min = factor * (factor > 0 ? g.min : g.max);
    const bool fits = sides.Near(t.max, max, largest) && sides.Near(t.min, min, largest) &&
                      sides.Near(t.mean, factor * g.mean, std::max(root, std::abs(t.mean)));
    if (!fits || sides.Near(factor, 1, 1)) continue;
    if (sides.Near(factor, -1, 1)) {
      return Cause{"sign", "all four statistics are those of golden with the opposite sign",
                   CauseConfidence::kMedium};
    }
    const double slack = std::max(1e-4, sides.tolerance / 4);
    return Cause{"scale",
                 fmt::format("all four statistics are those of golden times {}",
                             FactorText(factor, shape, slack)),
                 CauseConfidence::kMedium};
  }
  return std::nullopt;
}

std::optional<Cause> FindConstant(const Sides& sides) {
  const Four& t = sides.target;
  const Four& g = sides.golden;
  const double offset = t.mean - g.mean;
  const double scale =
      std::max({std::abs(t.max), std::abs(t.min), std::abs(g.max), std::abs(offset)});
  if (std::abs(offset) <= 4 * sides.tolerance * scale) return std::nullopt;
  const double norm = std::sqrt(std::max(
      0.0, g.norm * g.norm + 2 * offset * sides.count * g.mean + sides.count * offset * offset));
  const bool fits = sides.Near(t.max - g.max, offset, 2 * scale) &&
                    sides.Near(t.min - g.min, offset, 2 * scale) &&
                    sides.Near(t.norm, norm, 2 * std::max(t.norm, g.norm));
  if (!fits) return std::nullopt;
  return Cause{
      "offset",
      fmt::format("max, min, mean and norm are those of golden plus the constant {:.6g}", offset),
      CauseConfidence::kMedium};
}

std::optional<Cause> FindFacts(const Four& target, const Four& golden, DType dtype) {
  if (!IsFinite(target) && IsFinite(golden)) {
    return Cause{"nonfinite",
                 fmt::format("statistics of the target are not finite (max {}, min {}), those of "
                             "golden are",
                             target.max, target.min),
                 CauseConfidence::kHigh};
  }
  if (IsFinite(target) && !IsFinite(golden)) {
    if (std::max(std::abs(target.max), std::abs(target.min)) == LargestFinite(dtype)) {
      return Cause{"saturated",
                   "the target holds the largest number of its type where golden "
                   "is infinite",
                   CauseConfidence::kMedium};
    }
    return Cause{"nonfinite", "statistics of golden are not finite, those of the target are",
                 CauseConfidence::kHigh};
  }
  if (!IsFinite(target)) return std::nullopt;
  if (target.norm == 0 && target.max == 0 && golden.norm > 0) {
    return Cause{"zeroed-block",
                 fmt::format("the whole target is zero (golden norm {:.6g})", golden.norm),
                 CauseConfidence::kHigh};
  }
  return std::nullopt;
}

// Max and min are elements: where both have few digits and golden's do not, all have.
std::optional<Cause> FindFewDigits(const Sides& sides) {
  const auto fits = [](double value, int bits) {
    int exponent = 0;
    const double scaled = std::ldexp(std::frexp(value, &exponent), bits);
    return scaled == std::nearbyint(scaled);
  };
  for (const auto& [bits, name] : {std::pair(8, "bfloat16"), std::pair(11, "float16")}) {
    const bool narrow = fits(sides.target.max, bits) && fits(sides.target.min, bits);
    const bool golden = fits(sides.golden.max, bits) || fits(sides.golden.min, bits);
    const double scale = std::max(std::abs(sides.golden.max), std::abs(sides.golden.min));
    const double error = std::max(std::abs(sides.target.max - sides.golden.max),
                                  std::abs(sides.target.min - sides.golden.min));
    if (narrow && !golden && error <= std::ldexp(4 * scale, -bits)) {
      return Cause{
          "narrowed",
          fmt::format("max and min of the target are {} numbers, those of golden are not", name),
          CauseConfidence::kMedium};
    }
  }
  return std::nullopt;
}

}  // namespace

Cause ClassifyStatistics(const Item& target, const Item& golden, double explained) {
  const std::optional<Four> t = FourOf(target);
  const std::optional<Four> g = FourOf(golden);
  Cause unexplained;
  unexplained.text = "four statistics do not show the kind of error; record tensors";
  if (!t || !g) return unexplained;
  const std::optional<DType> dtype = ParseDType(target.dtype.value_or(""));
  if (auto cause = FindFacts(*t, *g, dtype.value_or(DType::kFloat32))) return *cause;
  if (!IsFinite(*t) || !IsFinite(*g)) return unexplained;
  const double roundoff = RoundoffOf(target, golden);
  const Result<int64_t> count = ElementCount(golden.shape);
  const double noise = std::isfinite(explained) ? explained : 0;
  const Sides sides{*t, *g, count ? static_cast<double>(*count) : 1,
                    std::max({8 * noise, 4 * roundoff, 1e-6})};
  if (auto cause = FindFactor(sides, golden.shape)) return *cause;
  if (auto cause = FindConstant(sides)) return *cause;
  if (roundoff > 0 && roundoff < 1e-5) {
    if (auto cause = FindFewDigits(sides)) return *cause;
  }
  return unexplained;
}

}  // namespace plumbline::measure
