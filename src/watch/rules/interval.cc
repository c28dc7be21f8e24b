#include "watch/rules/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text/number_text.h"

namespace plumbline::watch {

Truth And(Truth a, Truth b) {
  if (a == Truth::kFalse || b == Truth::kFalse) return Truth::kFalse;
  return a == Truth::kTrue && b == Truth::kTrue ? Truth::kTrue : Truth::kUnknown;
}

Truth Or(Truth a, Truth b) {
  if (a == Truth::kTrue || b == Truth::kTrue) return Truth::kTrue;
  return a == Truth::kFalse && b == Truth::kFalse ? Truth::kFalse : Truth::kUnknown;
}

Truth Not(Truth a) {
  if (a == Truth::kUnknown) return a;
  return a == Truth::kTrue ? Truth::kFalse : Truth::kTrue;
}

Interval Around(double value, double slack) {
  const Interval::Number middle = value, by = slack;
  return {middle - by, middle + by};
}

Interval Both(const Interval& a, const Interval& b) {
  const Interval both{std::max(a.low, b.low), std::min(a.high, b.high)};
  return both.low <= both.high ? both : b;
}

Interval Magnitudes(const Interval& a) {
  const Interval::Number most = std::max(std::fabs(a.low), std::fabs(a.high));
  if (a.Holds(0)) return {0, most};
  return {std::min(std::fabs(a.low), std::fabs(a.high)), most};
}

Interval operator-(const Interval& a, const Interval& b) {
  return {a.low - b.high, a.high - b.low};
}

std::string_view RelationText(Relation relation) {
  switch (relation) {
    case Relation::kGreater:
      return ">";
    case Relation::kGreaterEqual:
      return ">=";
    case Relation::kLess:
      return "<";
    case Relation::kLessEqual:
      return "<=";
    case Relation::kEqual:
      return "==";
  }
  return "";
}

namespace {

bool HoldsFor(Interval::Number actual, Relation relation, double threshold) {
  switch (relation) {
    case Relation::kGreater:
      return actual > threshold;
    case Relation::kGreaterEqual:
      return actual >= threshold;
    case Relation::kLess:
      return actual < threshold;
    case Relation::kLessEqual:
      return actual <= threshold;
    case Relation::kEqual:
      return actual == threshold;
  }
  return false;
}

void AppendShown(Interval::Number value, int digits, std::string& out) {
  constexpr Interval::Number kMostWhole = 1e19L;
  const auto rounded = static_cast<double>(value);
  if (value == std::floor(value) && std::fabs(value) < kMostWhole &&
      (digits == 17 || std::fabs(value) < 1e6L)) {
    out += fmt::format("{:.0f}", value);
    return;
  }
  AppendGeneral(rounded, digits, out);
}

}  // namespace

Truth Compare(const Interval& actual, Relation relation, double threshold) {
  if (actual.is_point()) return TruthOf(HoldsFor(actual.low, relation, threshold));
  if (relation == Relation::kEqual) {
    return actual.Holds(threshold) ? Truth::kUnknown : Truth::kFalse;
  }
  const bool low = HoldsFor(actual.low, relation, threshold);
  const bool high = HoldsFor(actual.high, relation, threshold);
  if (low != high) return Truth::kUnknown;
  return TruthOf(low);
}

std::string IntervalText(const Interval& interval) {
  constexpr int kShown = 6;
  std::string text;
  if (interval.is_point()) {
    const auto value = static_cast<double>(interval.low);
    if (static_cast<Interval::Number>(value) == interval.low && value != std::floor(value)) {
      return PythonFloat(value);
    }
    AppendShown(interval.low, 17, text);
    return text;
  }
  std::string low, high;
  AppendShown(interval.low, kShown, low);
  AppendShown(interval.high, kShown, high);
  return low == high ? low : fmt::format("{}..{}", low, high);
}

}  // namespace plumbline::watch
