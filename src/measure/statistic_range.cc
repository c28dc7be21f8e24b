#include "measure/statistic_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "measure/compared_row.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
namespace {

Interval Exactly(double value) { return {value, value}; }
Interval Sum(const Interval& a, const Interval& b) { return {a.low + b.low, a.high + b.high}; }

Interval Scaled(const Interval& a, double factor) {
  const double one = a.low * factor, other = a.high * factor;
  return {std::min(one, other), std::max(one, other)};
}

double Outside(const Interval& interval, double value) {
  return std::max({interval.low - value, value - interval.high, 0.0});
}

// Maximum, minimum, mean and root mean square.
std::optional<std::array<double, 4>> NumbersOf(const Item& item) {
  std::array<double, 4> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::optional<double> number = NumberOf(item.statistics[i]);
    if (!number || !std::isfinite(*number)) return std::nullopt;
    numbers[i] = *number;
  }
  const double count = ElementsOf(item);
  if (!(count > 0)) return std::nullopt;
  numbers[3] /= std::sqrt(count);
  return numbers;
}

}  // namespace

double StatisticRange::Largest() const { return std::max({max.high, -min.low, 0.0}); }

std::optional<StatisticRange> RangeOf(const Item& item) {
  const auto numbers = NumbersOf(item);
  if (!numbers) return std::nullopt;
  const auto& [max, min, mean, rms] = *numbers;
  return StatisticRange{Exactly(max), Exactly(min), Exactly(mean), Exactly(rms),
                        std::max(std::abs(max), std::abs(min))};
}

StatisticRange RangeOfNumber(double number) {
  const double size = std::abs(number);
  return {Exactly(number), Exactly(number), Exactly(number), Exactly(size), size};
}

StatisticRange Within(double bound) {
  const Interval all{-bound, bound};
  return {all, all, all, {0, bound}, bound};
}

StatisticRange Times(const StatisticRange& range, double factor) {
  const Interval& top = factor < 0 ? range.min : range.max;
  const Interval& bottom = factor < 0 ? range.max : range.min;
  return {Scaled(top, factor), Scaled(bottom, factor), Scaled(range.mean, factor),
          Scaled(range.rms, std::abs(factor)), range.size * std::abs(factor)};
}

StatisticRange Plus(const StatisticRange& a, const StatisticRange& b) {
  StatisticRange sum{Sum(a.max, b.max), Sum(a.min, b.min), Sum(a.mean, b.mean), Sum(a.rms, b.rms),
                     a.size + b.size};
  // The largest element of one stands beside some element of the other.
  sum.max.low = std::max(a.max.low + b.min.low, a.min.low + b.max.low);
  sum.min.high = std::min(a.min.high + b.max.high, a.max.high + b.min.high);
  sum.rms.low = std::max({a.rms.low - b.rms.high, b.rms.low - a.rms.high, 0.0});
  return sum;
}

StatisticRange Product(const StatisticRange& a, const StatisticRange& b) {
  StatisticRange product = Within(a.Largest() * b.Largest());
  product.rms.high = std::min(a.rms.high * b.Largest(), a.Largest() * b.rms.high);
  return product;
}

std::optional<StatisticRange> Quotient(const StatisticRange& a, const StatisticRange& b) {
  const double least = std::max(b.min.low, -b.max.high);
  if (!(least > 0)) return std::nullopt;
  StatisticRange quotient = Within(a.Largest() / least);
  quotient.rms.high = a.rms.high / least;
  return quotient;
}

StatisticRange SquareOf(const StatisticRange& range) {
  StatisticRange square = Within(range.Largest() * range.Largest());
  square.min.low = square.max.low = 0;
  square.mean = {range.rms.low * range.rms.low, range.rms.high * range.rms.high};
  return square;
}

std::optional<StatisticRange> RootOf(const StatisticRange& range) {
  if (!(range.min.low >= 0) || !(range.mean.low >= 0)) return std::nullopt;
  const auto root = [](const Interval& of) {
    return Interval{std::sqrt(of.low), std::sqrt(of.high)};
  };
  const Interval rms = root(range.mean);  // the mean of the squares of roots
  return StatisticRange{
      root(range.max), root(range.min), {0, rms.high}, rms, std::sqrt(range.size)};
}

std::optional<double> RoundingsOutside(const StatisticRange& range, const Item& result,
                                       double unit_roundoff) {
  const auto numbers = NumbersOf(result);
  const double rounding = unit_roundoff * range.size;
  if (!numbers || !(rounding > 0) || !std::isfinite(range.size)) return std::nullopt;
  const auto& [max, min, mean, rms] = *numbers;
  const double off = std::max({Outside(range.max, max), Outside(range.min, min),
                               Outside(range.mean, mean), Outside(range.rms, rms)});
  // Numbers below the normal ones keep fewer digits, or none.
  return std::max(off - std::numeric_limits<float>::min(), 0.0) / rounding;
}

}  // namespace plumbline::measure
