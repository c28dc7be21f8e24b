#include "measure/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/text/text_parts.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "record/recorded_number.h"

namespace plumbline::measure {

namespace {

// Differences up to here are none that anybody computes with: numbers below the normal ones, which
// processors may take for zero. Types of few exponents hold useful numbers there; of them, one unit
// of the smallest. 0: not a floating type.
double LeastDifference(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return std::numeric_limits<double>::min();
    case DType::kFloat32:
    case DType::kBFloat16:
    case DType::kComplex64:
      return std::numeric_limits<float>::min();
    case DType::kFloat16:
      return 0x1.8p-24;  // less than two units; metrics are rounded
    default:
      return 0;
  }
}

double LeastDifference(const Item& target, const Item& golden) {
  double least = 0;
  for (const Item* item : {&target, &golden}) {
    const std::optional<DType> dtype = item->dtype ? ParseDType(*item->dtype) : std::nullopt;
    if (!dtype) return 0;
    least = std::max(least, LeastDifference(*dtype));
  }
  return least;
}

// Whether no recorded statistic differs by more than `least` in each element explains.
bool DifferByLess(const Item& target, const Item& golden, double least) {
  for (size_t i = 0; i < target.statistics.size(); ++i) {
    const std::optional<double> a = NumberOf(target.statistics[i]);
    const std::optional<double> b = NumberOf(golden.statistics[i]);
    const bool is_extreme = i < 2, is_norm = i == 3;
    if (!a || !b) {
      if (is_extreme) return false;
      continue;
    }
    const double count = is_norm ? std::max(ElementsOf(golden), 1.0) : 1;
    if (!(std::abs(*a - *b) <= least * std::sqrt(count))) return false;
  }
  return true;
}

}  // namespace

std::optional<Difference> BelowNormal(const Item& target, const Item& golden,
                                      const PairContext& context, const TensorMetrics* metrics) {
  const double least = LeastDifference(target, golden);
  if (least == 0 || context.mode == CompareMode::kDigest || HasNonFinite(target) ||
      HasNonFinite(golden)) {
    return std::nullopt;
  }
  double error = 0;
  if (context.mode == CompareMode::kTensor && metrics != nullptr) {
    const double* largest = std::get_if<double>(&metrics->max_abs_error);
    if (metrics->mismatch_count == 0 || largest == nullptr || !(*largest <= least)) {
      return std::nullopt;
    }
    const double* relative = std::get_if<double>(&metrics->relative_l2);
    error = relative == nullptr ? 1 : *relative;
  } else {
    if (target.statistics == golden.statistics || !DifferByLess(target, golden, least)) {
      return std::nullopt;
    }
    error = StatisticError(target.statistics, golden.statistics,
                           static_cast<int64_t>(std::max(ElementsOf(golden), 1.0)));
    if (!std::isfinite(error)) error = 1;
  }
  if (!(error > RoundoffOf(target, golden))) return std::nullopt;
  return Difference{Difference::Kind::kDecided, error, Verdict::kWithinNoise, "subnormal", {}};
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Difference Decided(Verdict verdict, std::string_view reason) {
  return {
      Difference::Kind::kDecided, std::numeric_limits<double>::quiet_NaN(), verdict, reason, {}};
}

Difference Equal() { return {}; }

bool IsFloating(const Item& item) {
  if (!item.dtype) return false;
  const std::optional<DType> dtype = ParseDType(*item.dtype);
  if (!dtype) return true;  // unknown types get the stricter rules
  const DTypeKind kind = InfoOf(*dtype).kind;
  return kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
}

bool IsEmpty(const Item& item) {
  return std::find(item.shape.begin(), item.shape.end(), 0) != item.shape.end();
}

// Elements are non-finite exactly if an extreme is: max and min of a tensor with NaN are NaN.
bool HasStatistics(const Item& item) {
  return std::any_of(item.statistics.begin(), item.statistics.end(), [](const Recorded& value) {
    return !std::holds_alternative<std::monostate>(value);
  });
}

// As Python compares them.
std::optional<double> ScalarNumber(const Item& item) {
  if (const auto* truth = std::get_if<bool>(&item.statistics[0])) return *truth ? 1 : 0;
  return NumberOf(item.statistics[0]);
}

// Whether two unequal records are one number, as 2 and 2.0: doubles alone would not tell large
// integers apart.
bool IsOneNumber(const Item& target, const Item& golden) {
  const std::optional<double> a = ScalarNumber(target);
  const std::optional<double> b = ScalarNumber(golden);
  if (!a || !b || *a != *b) return false;
  const auto* x = std::get_if<int64_t>(&target.statistics[0]);
  const auto* y = std::get_if<int64_t>(&golden.statistics[0]);
  if (x != nullptr && y != nullptr) return *x == *y;
  if (x == nullptr && y == nullptr) return true;
  constexpr double kBeyondIntegers = 0x1p63;
  return *a < kBeyondIntegers && static_cast<int64_t>(*a) == (x != nullptr ? *x : *y);
}

Difference OfScalars(const Item& target, const Item& golden) {
  if (target.dtype == golden.dtype && target.shape_text == golden.shape_text &&
      target.digest == golden.digest && target.statistics == golden.statistics) {
    return Equal();
  }
  const std::optional<double> a = ScalarNumber(target);
  const std::optional<double> b = ScalarNumber(golden);
  if (IsOneNumber(target, golden)) return Equal();  // 2 and 2.0, 1 and True
  if (a && b && std::isnan(*a) && std::isnan(*b)) {
    return Decided(Verdict::kNotComparable, "nonfinite-both");
  }
  Difference difference{
      Difference::Kind::kArgument, kInfinity, Verdict::kBroken, "argument-differs", {}};
  if (IsExact(target, golden)) return difference;
  if (a && b && std::isfinite(*a - *b) && *b != 0) difference.error = std::abs((*a - *b) / *b);
  return difference;
}

// Whether a statistic shows it; not all need be recorded.
bool IsNonZero(const Item& item) {
  return std::ranges::any_of(item.statistics, [](const Recorded& each) {
    const std::optional<double> number = NumberOf(each);
    return number && *number != 0;
  });
}

// NaN, infinities, zeros and emptiness, as far as the recorded statistics show them.
std::optional<Difference> Exceptional(const Item& target, const Item& golden) {
  if (IsEmpty(target) || IsEmpty(golden)) return Decided(Verdict::kNotComparable, "empty");
  const bool target_bad = HasNonFinite(target);
  const bool golden_bad = HasNonFinite(golden);
  if (target_bad && golden_bad) return std::nullopt;  // OfNonFinite
  if (target_bad) return Decided(Verdict::kBroken, "nonfinite-target");
  if (golden_bad) return Decided(Verdict::kBroken, "nonfinite-golden");
  if (!IsFloating(target) || !IsFloating(golden)) return std::nullopt;
  const bool target_zero = IsAllZero(target);
  const bool golden_zero = IsAllZero(golden);
  if (target_zero && golden_zero) return Decided(Verdict::kNotComparable, "zero-both");
  if (target_zero && IsNonZero(golden)) return Decided(Verdict::kBroken, "zero-target");
  if (golden_zero && IsNonZero(target)) return Decided(Verdict::kBroken, "zero-golden");
  return std::nullopt;
}

int64_t ElementCountOf(const Item& item) {
  const Result<int64_t> count = ElementCount(item.shape);
  return count ? std::max<int64_t>(*count, 1) : 1;
}

// Whether upstream takes the statistics of this dtype from a float32 copy: integers and float64,
// but for single values without dimensions.
bool IsReducedAsFloat32(const Item& item) {
  if (item.shape.empty()) return false;
  const std::optional<DType> dtype = item.dtype ? ParseDType(*item.dtype) : std::nullopt;
  if (!dtype) return false;
  const DTypeKind kind = InfoOf(*dtype).kind;
  return kind == DTypeKind::kSigned || kind == DTypeKind::kUnsigned || *dtype == DType::kFloat64;
}

// Whether exactly one of two statistics was rounded to float32 and they are otherwise the same:
// upstream takes those of integers and float64 from a float32 copy, plumbline from the values.
bool DifferByFloat32Rounding(const Recorded& target, const Recorded& golden) {
  const std::optional<double> a = NumberOf(target);
  const std::optional<double> b = NumberOf(golden);
  if (!a || !b) return false;
  constexpr double kLargestFloat = std::numeric_limits<float>::max();
  if (!(std::abs(*a) <= kLargestFloat) || !(std::abs(*b) <= kLargestFloat)) return false;
  const bool a_is_float = static_cast<double>(static_cast<float>(*a)) == *a;
  const bool b_is_float = static_cast<double>(static_cast<float>(*b)) == *b;
  constexpr double kRounding = 0x1p-22;  // float32 sums of a few values, not one rounding only
  return a_is_float != b_is_float && std::abs(*a - *b) <= kRounding * std::abs(*b);
}

constexpr double kLeastError = 0x1p-63;  // relative, of two unequal int64

bool DifferAsIntegers(const Item& target, const Item& golden) {
  for (size_t i = 0; i < target.statistics.size(); ++i) {
    const auto* a = std::get_if<int64_t>(&target.statistics[i]);
    const auto* b = std::get_if<int64_t>(&golden.statistics[i]);
    if (a != nullptr && b != nullptr && *a != *b) return true;
  }
  return false;
}

// Whether a tensor of numbers has a truth value for a statistic, which is none of it.
bool HasTruthOfNumbers(const Item& item) {
  const std::optional<DType> dtype = item.dtype ? ParseDType(*item.dtype) : std::nullopt;
  return dtype && InfoOf(*dtype).kind != DTypeKind::kBool &&
         std::ranges::any_of(item.statistics, [](const Recorded& each) {
           return std::holds_alternative<bool>(each);
         });
}

// A statistic that only one of the two has, although both recorders write it.
bool LacksStatistics(const Item& target, const Item& golden) {
  for (size_t i = 0; i < target.statistics.size(); ++i) {
    const bool missing = std::holds_alternative<std::monostate>(target.statistics[i]) !=
                         std::holds_alternative<std::monostate>(golden.statistics[i]);
    const bool is_extreme = i < 2;
    if (missing && (is_extreme || !MayLackMean(golden))) return true;
  }
  return !HasStatistics(target) || !HasStatistics(golden);
}

bool SameClass(double a, double b) {
  if (std::isfinite(a) || std::isfinite(b)) return std::isfinite(a) && std::isfinite(b);
  return std::isnan(a) ? std::isnan(b) : a == b;
}

// Both hold NaN or infinities: what the statistics say about them, and about the rest.
Difference OfNonFinite(const Item& target, const Item& golden) {
  auto a = target.statistics;
  auto b = golden.statistics;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::optional<double> x = NumberOf(a[i]);
    const std::optional<double> y = NumberOf(b[i]);
    const bool is_extreme = i < 2;
    if (is_extreme && x && y && !SameClass(*x, *y)) {
      return Decided(Verdict::kBroken, "nonfinite-position");
    }
    if (x && y && std::isfinite(*x) && std::isfinite(*y)) continue;
    a[i] = is_extreme ? (*target.finite_extremes)[i] : Recorded();
    b[i] = is_extreme ? (*golden.finite_extremes)[i] : Recorded();
  }
  Difference difference = Equal();
  difference.doubt = "nonfinite-both";
  const double error = StatisticError(a, b, ElementCountOf(golden));
  if (error == 0) return difference;
  difference.kind = Difference::Kind::kNumeric;
  difference.error = error;
  return difference;
}

Difference OfStatistics(const Item& target, const Item& golden, const PairContext& context) {
  if (LacksStatistics(target, golden) || HasTruthOfNumbers(target) || HasTruthOfNumbers(golden)) {
    return Decided(Verdict::kNotComparable, "no-data");
  }
  if (HasNonFinite(target) && HasNonFinite(golden)) return OfNonFinite(target, golden);
  if (target.statistics == golden.statistics) return Equal();
  // Truth values: max and min are all there is.
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const bool truth = std::holds_alternative<bool>(target.statistics[i]) ||
                       std::holds_alternative<bool>(golden.statistics[i]);
    if (truth && target.statistics[i] != golden.statistics[i]) {
      return {Difference::Kind::kNumeric, 1, Verdict::kBroken, {}, {}};
    }
  }
  auto aligned = target.statistics;
  if (context.reductions_differ && IsReducedAsFloat32(golden)) {
    for (size_t i = 0; i < aligned.size(); ++i) {
      if (DifferByFloat32Rounding(aligned[i], golden.statistics[i])) {
        aligned[i] = golden.statistics[i];
      }
    }
  }
  const double error = StatisticError(aligned, golden.statistics, ElementCountOf(golden));
  if (error == 0) {
    // A statistic that one side lacks (integers' mean, for example) is no difference. Integers may
    // differ by less than double tells apart.
    if (!DifferAsIntegers(target, golden)) return Equal();
    return {Difference::Kind::kNumeric, kLeastError, Verdict::kSame, {}, {}};
  }
  return {Difference::Kind::kNumeric, error, Verdict::kSame, {}, {}};
}

// XOR digests ("0x...") have one basis in all releases.
bool HasOtherDigestBasis(const Item& target, const Item& golden) {
  constexpr size_t kCrcDigits = 8;
  const std::string_view dtype = InfoOf(DType::kBFloat16).torch_name;
  return target.dtype == dtype && golden.dtype == dtype && target.digest.size() == kCrcDigits &&
         golden.digest.size() == kCrcDigits;
}

Difference OfDigests(const Item& target, const Item& golden, const PairContext& context) {
  if (!target.has_recorded_digest || !golden.has_recorded_digest) {
    return Decided(Verdict::kNotComparable, "no-data");
  }
  const bool both_bad = HasNonFinite(target) && HasNonFinite(golden);
  if (target.digest == golden.digest) {
    Difference equal = Equal();
    if (both_bad) equal.doubt = "nonfinite-both";
    return equal;
  }
  Difference difference{Difference::Kind::kNumeric,
                        std::numeric_limits<double>::quiet_NaN(),
                        Verdict::kSuspicious,
                        "digest-differs",
                        {}};
  if (context.digest_bases_differ && HasOtherDigestBasis(target, golden)) {
    // Unequal although the contents may be equal; the statistics can still show what is broken.
    difference = Decided(Verdict::kNotComparable, "digest-basis");
  }
  if (!HasStatistics(target) || !HasStatistics(golden)) return difference;
  const Difference size = OfStatistics(target, golden, context);
  if (size.kind == Difference::Kind::kDecided && size.verdict == Verdict::kBroken) return size;
  if (difference.kind == Difference::Kind::kDecided) return difference;
  // Equal statistics of unequal contents: the size stays unknown, not zero.
  if (size.kind == Difference::Kind::kNumeric) difference.error = size.error;
  return difference;
}

// The largest error of one element, brought to the scale of the error of all: rounding spreads, so
// that no element is further off than a few times the mean error. Zero where the scale is unknown.
double LocalError(const TensorMetrics& metrics, const Item& golden) {
  const double* max_abs = std::get_if<double>(&metrics.max_abs_error);
  const std::optional<double> norm = NumberOf(golden.statistics[3]);
  const std::optional<double> max = NumberOf(golden.statistics[0]);
  const std::optional<double> min = NumberOf(golden.statistics[1]);
  if (max_abs == nullptr || !norm || !max || !min || metrics.element_count == 0) return 0;
  const double rms = *norm / std::sqrt(static_cast<double>(metrics.element_count));
  const double peak = std::max(std::abs(*max), std::abs(*min));
  const double scale = std::max(kElementTail * rms, kPeakTail * peak);
  return scale > 0 && std::isfinite(scale) ? *max_abs / scale : 0;
}

Difference OfTensors(const TensorMetrics& metrics, const Item& golden) {
  if (const Absent* absent = std::get_if<Absent>(&metrics.max_abs_error)) {
    switch (*absent) {
      case Absent::kEmpty:
        return Decided(Verdict::kNotComparable, "empty");
      case Absent::kUnreadable:
        return Decided(Verdict::kNotComparable, "unreadable");
      case Absent::kNonFinite:
        return Decided(Verdict::kBroken, "nonfinite-position");
      case Absent::kShapeMismatch:
        return Decided(Verdict::kNotComparable, "shape-differs");
      default:
        return Decided(Verdict::kNotComparable, "no-data");
    }
  }
  if (metrics.mismatch_count == 0) return Equal();
  const double* error = std::get_if<double>(&metrics.relative_l2);
  if (error == nullptr) return {Difference::Kind::kNumeric, kInfinity, Verdict::kSame, {}, {}};
  const double local = LocalError(metrics, golden);
  return {Difference::Kind::kNumeric, std::max(*error, local), Verdict::kSame, {}, {}};
}

// The same but for some statistics.
Item Without(const StatisticSet& left_out, const Item& item) {
  Item rest = item;
  std::array<Recorded, 2> finite = *item.finite_extremes;
  for (size_t i = 0; i < left_out.size(); ++i) {
    if (!left_out[i]) continue;
    rest.statistics[i] = Recorded();
    if (i < finite.size()) finite[i] = Recorded();
  }
  rest.finite_extremes = finite;
  return rest;
}

}  // namespace

Difference DifferenceOf(const Item& target, const Item& golden, const PairContext& context,
                        const TensorMetrics* metrics) {
  if (std::ranges::count(context.left_out, true) > 0 && target.is_tensor && golden.is_tensor) {
    PairContext of_rest = context;
    of_rest.left_out = {};
    return DifferenceOf(Without(context.left_out, target), Without(context.left_out, golden),
                        of_rest, metrics);
  }
  if (!target.is_tensor && !golden.is_tensor) return OfScalars(target, golden);
  if (target.is_tensor != golden.is_tensor) {
    return Decided(Verdict::kNotComparable, "structure-differs");
  }
  if (IsEmpty(target) && IsEmpty(golden)) return Decided(Verdict::kNotComparable, "empty");
  if (const std::optional<Difference> none = BelowNormal(target, golden, context, metrics)) {
    return *none;
  }
  if (context.mode == CompareMode::kTensor && metrics != nullptr) {
    Difference measured = OfTensors(*metrics, golden);
    if (measured.kind == Difference::Kind::kDecided) return measured;
    if (HasNonFinite(target) && HasNonFinite(golden)) {
      measured.doubt = "nonfinite-both";
      return measured;
    }
    const std::optional<Difference> exceptional = Exceptional(target, golden);
    return exceptional ? *exceptional : measured;
  }
  if (const std::optional<Difference> exceptional = Exceptional(target, golden)) {
    return *exceptional;
  }
  return context.mode == CompareMode::kDigest ? OfDigests(target, golden, context)
                                              : OfStatistics(target, golden, context);
}

bool AreWrittenNumbers(const Item& target, const Item& golden) {
  const std::optional<double> a = NumberOf(target.statistics[0]);
  const std::optional<double> b = NumberOf(golden.statistics[0]);
  if (target.is_tensor || golden.is_tensor || !a || !b) return false;
  const auto has_few_digits = [](double number) {
    return std::isfinite(number) && ParseReal(fmt::format("{:.7e}", number)) == number;
  };
  const auto is_float32 = [](double number) {
    return static_cast<double>(static_cast<float>(number)) == number;
  };
  return has_few_digits(*a) && has_few_digits(*b) && !(is_float32(*a) && is_float32(*b));
}

bool IsExact(const Item& target, const Item& golden) {
  for (const Item* item : {&target, &golden}) {
    if (!item->dtype) return false;
    if (!item->is_tensor) {
      if (*item->dtype != "<class 'int'>" && *item->dtype != "<class 'bool'>") return false;
      continue;
    }
    const std::optional<DType> dtype = ParseDType(*item->dtype);
    if (!dtype) return false;
    const DTypeKind kind = InfoOf(*dtype).kind;
    if (kind == DTypeKind::kFloat || kind == DTypeKind::kComplex) return false;
  }
  return true;
}

Difference AsResidue(const Difference& difference, double cancelled) {
  const bool is_zero = difference.kind == Difference::Kind::kDecided &&
                       (difference.reason == "zero-target" || difference.reason == "zero-golden");
  if (!is_zero || !(cancelled * kNoiseFactor >= 1)) return difference;
  Difference residue;
  residue.kind = Difference::Kind::kNumeric;
  residue.error = 1;
  return residue;
}

bool IsMultiple(const Item& target, const Item& golden) {
  constexpr int64_t kFewest = 8;         // of fewer, rounding leaves but few digits
  constexpr double kTolerance = 1e-5;    // of statistics in float32
  constexpr double kLeastFactor = 1e-3;  // further from one
  if (ElementCountOf(golden) < kFewest) return false;
  const std::optional<double> size = NumberOf(golden.statistics[3]);
  const std::optional<double> other = NumberOf(target.statistics[3]);
  if (!size || !other || !(*size > 0) || !(*other > 0)) return false;
  const double factor = *other / *size;
  if (!(std::abs(factor - 1) > kLeastFactor)) return false;
  const auto is_scaled = [&](size_t of_target, size_t of_golden, double sign) {
    const std::optional<double> a = NumberOf(target.statistics[of_target]);
    const std::optional<double> b = NumberOf(golden.statistics[of_golden]);
    return a && b && std::abs(*a - sign * factor * *b) <= kTolerance * std::abs(*a);
  };
  const bool is_same_sign = is_scaled(0, 0, 1) && is_scaled(1, 1, 1) && is_scaled(2, 2, 1);
  return is_same_sign || (is_scaled(0, 1, -1) && is_scaled(1, 0, -1) && is_scaled(2, 2, -1));
}

Verdict VerdictOfRatio(double error, double expected) {
  if (error == 0) return Verdict::kSame;
  if (error <= kNoiseFactor * expected) return Verdict::kWithinNoise;
  if (error <= kSuspiciousFactor * expected) return Verdict::kSuspicious;
  return Verdict::kBroken;  // also when error is NaN
}

double RoundoffOf(const Item& target, const Item& golden) {
  double roundoff = 0;
  for (const Item* item : {&target, &golden}) {
    if (!item->is_tensor || !item->dtype) continue;
    const std::optional<DType> dtype = ParseDType(*item->dtype);
    if (dtype) roundoff = std::max(roundoff, UnitRoundoff(*dtype));
    if (&target == &golden) break;
  }
  return roundoff;
}

int Severity(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSame:
      return 0;
    case Verdict::kWithinNoise:
      return 1;
    case Verdict::kNotComparable:
      return 2;
    case Verdict::kSuspicious:
      return 3;
    case Verdict::kBroken:
      return 4;
  }
  return 4;
}

std::string AccuracyText(const TensorMetrics& metrics) {
  if (const Absent* absent = std::get_if<Absent>(&metrics.max_abs_error)) {
    if (*absent == Absent::kShapeMismatch) return "Unmatched";
    return *absent == Absent::kNonFinite ? "No" : "None";
  }
  const double max_abs = std::get<double>(metrics.max_abs_error);
  if (const Absent* absent = std::get_if<Absent>(&metrics.cosine)) {
    if (*absent == Absent::kZeroNorm) return "No";
    const double* relative = std::get_if<double>(&metrics.max_relative_error);
    const bool close =
        max_abs <= kMaxAbsStrict || (relative != nullptr && *relative <= kScalarRelative);
    return close && max_abs <= kMaxAbsLoose ? "Yes" : "No";
  }
  const double cosine = std::get<double>(metrics.cosine);
  // Written so that NaN fails.
  const bool loose = cosine >= kCosineLoose && max_abs <= kMaxAbsLoose;
  const bool strict = cosine >= kCosineStrict || max_abs <= kMaxAbsStrict;
  return loose && strict ? "Yes" : "No";
}

}  // namespace plumbline::measure
