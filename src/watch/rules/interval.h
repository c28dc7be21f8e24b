// Numbers that are known to lie between two others, and what follows from that: yes, no or unknown.

#ifndef PLUMBLINE_WATCH_RULES_INTERVAL_H_
#define PLUMBLINE_WATCH_RULES_INTERVAL_H_

#include <cstdint>
#include <limits>
#include <string>

namespace plumbline::watch {

enum class Truth : uint8_t { kFalse, kTrue, kUnknown };

inline Truth TruthOf(bool value) { return value ? Truth::kTrue : Truth::kFalse; }
// Kleene's logic: unknown only where the other side does not decide.
Truth And(Truth a, Truth b);
Truth Or(Truth a, Truth b);
Truth Not(Truth a);

// From `low` to `high`, both included; the default says nothing. 64-bit integers are exact.
struct Interval {
  using Number = long double;
  Number low = -std::numeric_limits<Number>::infinity();
  Number high = std::numeric_limits<Number>::infinity();

  static Interval Of(Number value) { return {value, value}; }
  [[nodiscard]] bool is_point() const { return low == high; }
  [[nodiscard]] bool is_bounded() const {
    return low > -std::numeric_limits<Number>::infinity() &&
           high < std::numeric_limits<Number>::infinity();
  }
  [[nodiscard]] bool Holds(Number value) const { return low <= value && value <= high; }
};

// `value` and all that differ from it by at most `slack`.
Interval Around(double value, double slack);
// What lies in both. Where nothing does, which rounding alone can cause: `b`.
Interval Both(const Interval& a, const Interval& b);
// The magnitudes of its numbers.
Interval Magnitudes(const Interval& a);
Interval operator-(const Interval& a, const Interval& b);

enum class Relation : uint8_t { kGreater, kGreaterEqual, kLess, kLessEqual, kEqual };
std::string_view RelationText(Relation relation);  // ">", ">=", ...

// Whether every number of `actual` stands so to `threshold`, or none.
Truth Compare(const Interval& actual, Relation relation, double threshold);

// "1.5", or "1.16667..1.87083" where it is not known better; integers in full.
std::string IntervalText(const Interval& interval);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_INTERVAL_H_
