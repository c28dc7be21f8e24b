#include "measure/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/tensor_metrics.h"
#include "record/recorded_number.h"
#include "tensor/element_value.h"

namespace plumbline::measure {

namespace {

// Integers of 64 bits on both sides are equal by their bytes: a double has fewer digits.
bool AreWide(DType a, DType b) {
  return a == b && InfoOf(a).size_bytes == 8 && InfoOf(a).kind != DTypeKind::kFloat;
}

void Add(double a, double b, bool equal, ElementMatch& match) {
  const uint64_t index = match.count++;
  if (equal) {
    ++match.equal;
    ++match.within_thousandth;
    ++match.within_hundredth;
    return;
  }
  if (!match.first_mismatch) match.first_mismatch = index;
  const double difference = std::abs(a - b);
  const double size = std::max(std::abs(a), std::abs(b));
  const double relative = size > 0 ? difference / size : 0;
  match.within_thousandth += difference <= 0.001 * size && std::isfinite(size) ? 1 : 0;
  match.within_hundredth += difference <= 0.01 * size && std::isfinite(size) ? 1 : 0;
  // Once NaN, always NaN.
  const auto larger = [](double old, double value) {
    return std::isnan(old) || std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                : std::max(old, value);
  };
  match.max_abs = larger(match.max_abs, difference);
  match.max_relative = larger(match.max_relative, relative);
}

// The first elements of `view` along every dimension, contiguous.
Result<Tensor> Crop(const TensorView& view, const Shape& sizes) {
  return Tensor::Copy({view.dtype, view.data, sizes, view.strides});
}

}  // namespace

Result<ElementMatch> MatchElements(const TensorView& a, const TensorView& b) {
  for (const TensorView* view : {&a, &b}) {
    if (InfoOf(view->dtype).kind != DTypeKind::kComplex) continue;
    return Error(ErrorCode::kUnsupported, fmt::format("elements of {}", InfoOf(view->dtype).name));
  }
  Shape left(a.sizes.begin(), a.sizes.end()), right(b.sizes.begin(), b.sizes.end());
  if (left.size() == right.size()) {
    for (size_t d = 0; d < left.size(); ++d) left[d] = right[d] = std::min(left[d], right[d]);
  }
  PL_TRY_ASSIGN(const Tensor first, Crop(a, left));
  PL_TRY_ASSIGN(const Tensor second, Crop(b, right));
  const TensorView x = first.view(), y = second.view();
  const auto count = static_cast<size_t>(std::min(x.element_count(), y.element_count()));
  const size_t x_size = InfoOf(x.dtype).size_bytes, y_size = InfoOf(y.dtype).size_bytes;
  const bool is_wide = AreWide(x.dtype, y.dtype);
  ElementMatch match;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const p = x.data + i * x_size;
    const std::byte* const q = y.data + i * y_size;
    const double u = ElementAsDouble(x.dtype, p), v = ElementAsDouble(y.dtype, q);
    const bool equal = is_wide ? std::memcmp(p, q, sizeof(int64_t)) == 0 : u == v;
    Add(u, v, equal, match);
  }
  return match;
}

namespace {

constexpr double kFar = 8;    // roundings that a few operations make
constexpr double kOff = 16;   // and more than these are an error of its own
constexpr double kRare = 40;  // times fewer than noise of sums leaves that far off
constexpr double kMostFarRatio = 1e-3;
constexpr uint64_t kManyDiffer = 200;  // so many that ten of them were far, if noise did it

struct Counts {
  uint64_t differing = 0, far = 0;
  bool has_off = false;
  double most = 0;  // roundings
};

// Adds finite pairs.
void Count(const double* target, const double* golden, size_t count,
           const TypicalDifference& typical, Counts& counts) {
  const double least = LeastOfLoneElement(typical);
  for (size_t i = 0; i < count; ++i) {
    const double distance = std::fabs(target[i] - golden[i]);
    if (!(distance > 0) || !std::isfinite(distance)) continue;
    ++counts.differing;
    const double own = typical.unit_roundoff * std::fabs(golden[i]);
    if (!(distance > kFar * own)) continue;
    ++counts.far;
    counts.most = std::max(counts.most, distance / own);
    counts.has_off = counts.has_off || (distance > kOff * own && distance > least);
  }
}

}  // namespace

double LeastOfLoneElement(const TypicalDifference& typical) {
  return kFar * std::max(typical.unit_roundoff * typical.golden, typical.difference);
}

bool HasLoneElement(const TensorView& target, const TensorView& golden,
                    const TypicalDifference& typical) {
  const bool is_complex = InfoOf(target.dtype).kind == DTypeKind::kComplex ||
                          InfoOf(golden.dtype).kind == DTypeKind::kComplex;
  if (is_complex || !target.is_contiguous() || !golden.is_contiguous()) return false;
  constexpr size_t kPartOfPair = 1024;
  std::array<double, kPartOfPair> mine, theirs;
  Counts counts;
  const auto elements = static_cast<size_t>(golden.element_count());
  for (size_t at = 0; at < elements; at += kPartOfPair) {
    const size_t size = std::min(kPartOfPair, elements - at);
    Widen(target.dtype, target.data + at * InfoOf(target.dtype).size_bytes, size, mine.data());
    Widen(golden.dtype, golden.data + at * InfoOf(golden.dtype).size_bytes, size, theirs.data());
    Count(mine.data(), theirs.data(), size, typical, counts);
  }
  if (!counts.has_off) return false;
  const auto differing = static_cast<double>(counts.differing);
  if (counts.differing >= kManyDiffer) {
    return static_cast<double>(counts.far) <= std::max(1.0, kMostFarRatio * differing);
  }
  return counts.most > kRare * differing;
}

namespace {

// Nearer than this, in sizes of the tensors, rounding of these counts in the distance.
constexpr double kNear = 0.125;

double SizeOf(const Item& item) { return RmsOf(item).value_or(0); }
double NormOf(const Item& item) { return SizeOf(item) * std::sqrt(ElementsOf(item)); }

// What is compared: the larger size, the larger relative error, the errors of both as a size.
struct Compared {
  explicit Compared(std::span<const InputError> operands) {
    for (const InputError& operand : operands) {
      size = std::max(size, SizeOf(*operand.golden));
      error = std::max(error, operand.error);
      moved += operand.error * SizeOf(*operand.golden);
    }
  }
  double size = 0, error = 0, moved = 0;
};

// Root mean square of the elements of a - b that lead to a result of this size.
double DifferenceOf(Distance distance, const Item& output, const Item& compared) {
  const double result = SizeOf(output);
  if (distance == Distance::kSquare) return std::sqrt(result);
  if (distance != Distance::kNorm) return result;
  return result / std::sqrt(std::max(ElementsOf(compared) / ElementsOf(output), 1.0));
}

// Distances of all pairs, |a|^2 + |b|^2 - 2 a b: each square is off as a number of the size of
// |a|^2 is, its root by that over the distance, and by the root of it where no distance is left.
struct Pairs {
  Pairs(const Item& output, const Item& rows, const Compared& compared, double rounding) {
    const double columns = rows.shape.empty() ? 1 : static_cast<double>(rows.shape->back());
    const double square = compared.size * compared.size * columns;
    const double error = rounding + compared.error;
    const double least = std::sqrt(square * error);
    const double smallest = std::abs(NumberOf(output.statistics[1]).value_or(0));
    const double result = SizeOf(output);
    of_all = result > 0 ? square * error / (result * result) : 0;
    nearest = std::max(smallest, least);
    of_nearest = square * error / nearest;
    // Each row may have one other as near as the nearest pair.
    double longest = 1;
    const std::span<const int64_t> sizes(*output.shape);
    for (const int64_t each : sizes.last(std::min<size_t>(sizes.size(), 2))) {
      longest = std::max(longest, static_cast<double>(each));
    }
    share = std::sqrt(1 / longest);
  }
  double of_all = 0;                   // relative error of most
  double nearest = 0, of_nearest = 0;  // size and absolute error
  double share = 0;                    // of such pairs, the root of it
};

}  // namespace

double DistanceError(const Item& output, std::string_view call_name,
                     std::span<const InputError> operands, double rounding) {
  const Distance distance = DistanceOfCall(call_name);
  const double result = SizeOf(output);
  if (distance == Distance::kNone || operands.size() < 2 || !(result > 0)) return 0;
  const Compared compared(operands.first(2));
  if (distance == Distance::kCosine || distance == Distance::kLogistic) return 0;
  if (distance == Distance::kAngle) {
    return result <= kNear ? (rounding + compared.error) / result : 0;
  }
  if (distance == Distance::kOfPairs) {
    const Pairs pairs(output, *operands[0].golden, compared, rounding);
    return std::max(pairs.of_all, pairs.share * pairs.of_nearest / result);
  }
  const double apart = DifferenceOf(distance, output, *operands[0].golden);
  if (!(apart <= kNear * compared.size)) return 0;
  const double relative = compared.moved / apart;
  return distance == Distance::kSquare ? 2 * relative + relative * relative : relative;
}

double DistanceGradientError(const DistanceGradient& of, std::string_view call_name,
                             std::span<const InputError> operands, double rounding) {
  const Distance distance = DistanceOfCall(call_name);
  const double size = NormOf(of.gradient), from = NormOf(of.incoming);
  if (distance == Distance::kNone || operands.size() < 2 || !(size > 0)) return 0;
  const Compared compared(operands.first(2));
  // Of a loss of one number, that of each element or row is a share of what comes in.
  const double each = from * std::sqrt(ElementsOf(of.incoming)) / size;
  const double error = rounding + compared.error;
  switch (distance) {
    case Distance::kAngle:
    case Distance::kCosine:
      return error * each / NormOf(*operands[0].golden);
    case Distance::kLogistic:
      return (rounding + compared.moved) * each / std::sqrt(ElementsOf(of.gradient));
    case Distance::kOfPairs: {
      const Pairs pairs(of.output, *operands[0].golden, compared, rounding);
      const double near = std::min(1.0, (pairs.of_nearest + compared.moved) / pairs.nearest);
      return std::max(pairs.of_all, near * from / size);
    }
    case Distance::kDifference:
      return 0;  // the incoming one itself
    default:
      break;
  }
  const double apart = DifferenceOf(distance, of.output, *operands[0].golden);
  if (!(apart <= kNear * compared.size)) return 0;
  const double relative = compared.moved / apart;
  // As many signs are not told as elements are no larger than their error.
  return distance == Distance::kAbsolute ? 2 * std::sqrt(std::min(relative, 1.0)) : relative;
}

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
