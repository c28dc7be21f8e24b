#include "measure/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "measure/standards.h"

namespace plumbline::measure {
namespace {

using Operands = std::span<const ElementOperand>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Recomputed Alone(double value) { return {value, std::abs(value)}; }
Recomputed Truth(bool value) { return {value ? 1.0 : 0.0, 0}; }
Recomputed Sum(double a, double b) { return {a + b, std::abs(a) + std::abs(b)}; }

double NumberAt(Operands operands, size_t place, size_t i, double otherwise) {
  return place < operands.size() ? operands[place].At(i) : otherwise;
}

double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

Recomputed Add(Operands o, size_t i) { return Sum(o[0].At(i), NumberAt(o, 2, i, 1) * o[1].At(i)); }
Recomputed Subtract(Operands o, size_t i) {
  return Sum(o[0].At(i), -NumberAt(o, 2, i, 1) * o[1].At(i));
}
Recomputed SubtractFrom(Operands o, size_t i) {
  return Sum(o[1].At(i), -NumberAt(o, 2, i, 1) * o[0].At(i));
}
Recomputed Multiply(Operands o, size_t i) { return Alone(o[0].At(i) * o[1].At(i)); }
Recomputed Divide(Operands o, size_t i) { return Alone(o[0].At(i) / o[1].At(i)); }
Recomputed DivideFrom(Operands o, size_t i) { return Alone(o[1].At(i) / o[0].At(i)); }
Recomputed Negate(Operands o, size_t i) { return Alone(-o[0].At(i)); }
Recomputed Magnitude(Operands o, size_t i) { return Alone(std::abs(o[0].At(i))); }
Recomputed Root(Operands o, size_t i) { return Alone(std::sqrt(o[0].At(i))); }
Recomputed InverseRoot(Operands o, size_t i) { return Alone(1 / std::sqrt(o[0].At(i))); }
Recomputed Inverse(Operands o, size_t i) { return Alone(1 / o[0].At(i)); }
Recomputed Square(Operands o, size_t i) { return Alone(o[0].At(i) * o[0].At(i)); }
Recomputed Sign(Operands o, size_t i) { return {SignOf(o[0].At(i)), 0}; }
Recomputed Round(Operands o, size_t i) { return {std::nearbyint(o[0].At(i)), 0}; }
Recomputed Floor(Operands o, size_t i) { return {std::floor(o[0].At(i)), 0}; }
Recomputed Ceil(Operands o, size_t i) { return {std::ceil(o[0].At(i)), 0}; }
Recomputed Truncate(Operands o, size_t i) { return {std::trunc(o[0].At(i)), 0}; }
// A copy may be one to a narrower type.
Recomputed Copy(Operands o, size_t i) { return Alone(o[0].At(i)); }
Recomputed Second(Operands o, size_t i) { return Alone(o[1].At(i)); }
Recomputed Larger(Operands o, size_t i) { return {std::max(o[0].At(i), o[1].At(i)), 0}; }
Recomputed Smaller(Operands o, size_t i) { return {std::min(o[0].At(i), o[1].At(i)), 0}; }
Recomputed Clamp(Operands o, size_t i) {
  const double least = NumberAt(o, 1, i, -kInfinity), most = NumberAt(o, 2, i, kInfinity);
  return Alone(std::min(std::max(o[0].At(i), least), most));
}
Recomputed Lerp(Operands o, size_t i) {
  const double a = o[0].At(i), b = o[1].At(i), weight = o[2].At(i);
  return {a + weight * (b - a), std::abs(a) + std::abs(weight) * (std::abs(a) + std::abs(b))};
}
Recomputed AddProduct(Operands o, size_t i) {
  return Sum(o[0].At(i), NumberAt(o, 3, i, 1) * o[1].At(i) * o[2].At(i));
}
Recomputed AddQuotient(Operands o, size_t i) {
  return Sum(o[0].At(i), NumberAt(o, 3, i, 1) * o[1].At(i) / o[2].At(i));
}
Recomputed IsMore(Operands o, size_t i) { return Truth(o[0].At(i) > o[1].At(i)); }
Recomputed IsLess(Operands o, size_t i) { return Truth(o[0].At(i) < o[1].At(i)); }
Recomputed IsAtLeast(Operands o, size_t i) { return Truth(o[0].At(i) >= o[1].At(i)); }
Recomputed IsAtMost(Operands o, size_t i) { return Truth(o[0].At(i) <= o[1].At(i)); }
Recomputed IsEqual(Operands o, size_t i) { return Truth(o[0].At(i) == o[1].At(i)); }
Recomputed IsOther(Operands o, size_t i) { return Truth(o[0].At(i) != o[1].At(i)); }

using Ranges = std::span<const RangeOperand>;
using MaybeRange = std::optional<StatisticRange>;

// The factor at `place`, 1 where it is left out; nothing where it is a tensor.
std::optional<double> FactorAt(Ranges operands, size_t place) {
  if (place >= operands.size()) return 1;
  if (!operands[place].is_number) return std::nullopt;
  return operands[place].range.max.high;
}

// `first` and `factor` times `second`.
MaybeRange PlusTimes(const StatisticRange& first, const MaybeRange& second,
                     const std::optional<double>& factor) {
  if (!second || !factor) return std::nullopt;
  return Plus(first, Times(*second, *factor));
}

MaybeRange RangeOfAdd(Ranges o) { return PlusTimes(o[0].range, o[1].range, FactorAt(o, 2)); }
MaybeRange RangeOfSubtract(Ranges o) {
  const std::optional<double> factor = FactorAt(o, 2);
  return factor ? PlusTimes(o[0].range, o[1].range, -*factor) : std::nullopt;
}
MaybeRange RangeOfSubtractFrom(Ranges o) {
  const std::optional<double> factor = FactorAt(o, 2);
  return factor ? PlusTimes(o[1].range, o[0].range, -*factor) : std::nullopt;
}
MaybeRange RangeOfMultiply(Ranges o) {
  if (o[1].is_number) return Times(o[0].range, o[1].range.max.high);
  if (o[0].is_number) return Times(o[1].range, o[0].range.max.high);
  return Product(o[0].range, o[1].range);
}
MaybeRange RangeOfDivide(Ranges o) {
  if (!o[1].is_number) return Quotient(o[0].range, o[1].range);
  const double divisor = o[1].range.max.high;
  return divisor == 0 ? std::nullopt : MaybeRange(Times(o[0].range, 1 / divisor));
}
MaybeRange RangeOfDivideFrom(Ranges o) { return Quotient(o[1].range, o[0].range); }
MaybeRange RangeOfNegate(Ranges o) { return Times(o[0].range, -1); }
MaybeRange RangeOfSquare(Ranges o) { return SquareOf(o[0].range); }
MaybeRange RangeOfRoot(Ranges o) { return RootOf(o[0].range); }
MaybeRange RangeOfCopy(Ranges o) { return o[0].range; }
MaybeRange RangeOfSecond(Ranges o) { return o[1].range; }
MaybeRange RangeOfLerp(Ranges o) {
  if (!o[2].is_number) return std::nullopt;
  const double weight = o[2].range.max.high;
  return Plus(Times(o[0].range, 1 - weight), Times(o[1].range, weight));
}
MaybeRange RangeOfAddProduct(Ranges o) {
  return PlusTimes(o[0].range, Product(o[1].range, o[2].range), FactorAt(o, 3));
}
MaybeRange RangeOfAddQuotient(Ranges o) {
  return PlusTimes(o[0].range, Quotient(o[1].range, o[2].range), FactorAt(o, 3));
}

struct ApiFunction {
  std::string_view name;
  size_t fewest, most;  // arguments
  ElementFunction function;
  RangeFunction range = nullptr;
};

// Sorted by name (checked by a test). Operators are listed by their names without underscores.
constexpr std::array kFunctions = {
    ApiFunction{"abs", 1, 1, Magnitude},
    ApiFunction{"add", 2, 3, Add, RangeOfAdd},
    ApiFunction{"addcdiv", 3, 4, AddQuotient, RangeOfAddQuotient},
    ApiFunction{"addcmul", 3, 4, AddProduct, RangeOfAddProduct},
    ApiFunction{"ceil", 1, 1, Ceil},
    ApiFunction{"clamp", 2, 3, Clamp},
    ApiFunction{"clamp_min", 2, 2, Larger},
    ApiFunction{"clip", 2, 3, Clamp},
    ApiFunction{"clone", 1, 1, Copy, RangeOfCopy},
    ApiFunction{"copy", 2, 2, Second, RangeOfSecond},
    ApiFunction{"div", 2, 2, Divide, RangeOfDivide},
    ApiFunction{"divide", 2, 2, Divide, RangeOfDivide},
    ApiFunction{"eq", 2, 2, IsEqual},
    ApiFunction{"floor", 1, 1, Floor},
    ApiFunction{"ge", 2, 2, IsAtLeast},
    ApiFunction{"gt", 2, 2, IsMore},
    ApiFunction{"iadd", 2, 2, Add, RangeOfAdd},
    ApiFunction{"imul", 2, 2, Multiply, RangeOfMultiply},
    ApiFunction{"isub", 2, 2, Subtract, RangeOfSubtract},
    ApiFunction{"itruediv", 2, 2, Divide, RangeOfDivide},
    ApiFunction{"le", 2, 2, IsAtMost},
    ApiFunction{"lerp", 3, 3, Lerp, RangeOfLerp},
    ApiFunction{"lt", 2, 2, IsLess},
    ApiFunction{"maximum", 2, 2, Larger},
    ApiFunction{"minimum", 2, 2, Smaller},
    ApiFunction{"mul", 2, 2, Multiply, RangeOfMultiply},
    ApiFunction{"multiply", 2, 2, Multiply, RangeOfMultiply},
    ApiFunction{"ne", 2, 2, IsOther},
    ApiFunction{"neg", 1, 1, Negate, RangeOfNegate},
    ApiFunction{"radd", 2, 2, Add, RangeOfAdd},
    ApiFunction{"reciprocal", 1, 1, Inverse},
    ApiFunction{"rmul", 2, 2, Multiply, RangeOfMultiply},
    ApiFunction{"round", 1, 1, Round},
    ApiFunction{"rsqrt", 1, 1, InverseRoot},
    ApiFunction{"rsub", 2, 3, SubtractFrom, RangeOfSubtractFrom},
    ApiFunction{"rtruediv", 2, 2, DivideFrom, RangeOfDivideFrom},
    ApiFunction{"sign", 1, 1, Sign},
    ApiFunction{"sqrt", 1, 1, Root, RangeOfRoot},
    ApiFunction{"square", 1, 1, Square, RangeOfSquare},
    ApiFunction{"sub", 2, 3, Subtract, RangeOfSubtract},
    ApiFunction{"truediv", 2, 2, Divide, RangeOfDivide},
    ApiFunction{"trunc", 1, 1, Truncate},
    ApiFunction{"where", 3, 3, Select},
};

const ApiFunction* Find(std::string_view call_name, size_t arguments) {
  if (!call_name.ends_with(".forward")) return nullptr;
  std::string_view api = ApiOfCall(call_name);
  if (api.size() > 4 && api.starts_with("__") && api.ends_with("__")) {
    api = api.substr(2, api.size() - 4);
  } else if (api.ends_with('_')) {
    api.remove_suffix(1);
  }
  const auto found = std::ranges::lower_bound(kFunctions, api, {}, &ApiFunction::name);
  const bool is_known = found != kFunctions.end() && found->name == api &&
                        arguments >= found->fewest && arguments <= found->most;
  return is_known ? found : nullptr;
}

}  // namespace

// Numbers are rounded to the type of the result.
Recomputed Select(std::span<const ElementOperand> operands, size_t i) {
  const double value = operands[0].At(i) != 0 ? operands[1].At(i) : operands[2].At(i);
  return {value, std::abs(value)};
}

ElementFunction ElementFunctionOf(std::string_view call_name, size_t arguments) {
  const ApiFunction* found = Find(call_name, arguments);
  return found == nullptr ? nullptr : found->function;
}

bool IsComparison(ElementFunction function) {
  constexpr std::array<ElementFunction, 6> kComparisons = {IsMore,   IsLess,  IsAtLeast,
                                                           IsAtMost, IsEqual, IsOther};
  return std::ranges::find(kComparisons, function) != kComparisons.end();
}

RangeFunction RangeFunctionOf(std::string_view call_name, size_t arguments) {
  const ApiFunction* found = Find(call_name, arguments);
  return found == nullptr ? nullptr : found->range;
}

std::optional<double> RoundingsOff(ElementFunction function,
                                   std::span<const ElementOperand> operands,
                                   std::span<const double> result, double unit_roundoff) {
  // Numbers below the normal ones keep fewer digits, or none.
  constexpr double kLeast = std::numeric_limits<float>::min();
  double most = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    const Recomputed expected = function(operands, i);
    if (expected.value == result[i]) continue;
    if (!std::isfinite(expected.value)) return std::nullopt;
    const double off = std::abs(expected.value - result[i]) - kLeast;
    if (off <= 0) continue;
    const double rounding = unit_roundoff * expected.size;
    if (!std::isfinite(off) || !(rounding > 0)) return kInfinity;
    most = std::max(most, off / rounding);
  }
  return most;
}

bool IsResultOf(ElementFunction function, std::span<const ElementOperand> operands,
                std::span<const double> result, double unit_roundoff) {
  const std::optional<double> off = RoundingsOff(function, operands, result, unit_roundoff);
  return off && *off <= kCallRoundings;
}

}  // namespace plumbline::measure
