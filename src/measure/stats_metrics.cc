#include "measure/stats_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <variant>

#include "kernels/tensor_scan.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "record/recorded_number.h"
#include "record/tensor_stats.h"

namespace plumbline::measure {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"max", "min", "mean", "norm"};
constexpr size_t kFewestTensors = 2;

// Of one side: in how many tensors a statistic may be, and in how many it is.
struct Counts {
  std::array<size_t, 4> due{}, there{};

  [[nodiscard]] bool Lacks(size_t i) const { return due[i] >= kFewestTensors && there[i] == 0; }
  [[nodiscard]] bool HasAll() const { return std::ranges::none_of(there, std::logical_not()); }
};

bool IsThere(const Recorded& value) { return !std::holds_alternative<std::monostate>(value); }

void Count(const Slot<Item>& item, Counts& counts) {
  if (!item || !item->is_tensor || std::ranges::none_of(item->statistics.array(), IsThere)) return;
  for (size_t i = 0; i < kNames.size(); ++i) {
    const bool is_extreme = i < 2;
    if (IsThere(item->statistics[i])) {
      ++counts.there[i];
    } else if (!is_extreme && MayLackMean(*item)) {
      continue;
    }
    ++counts.due[i];
  }
}

bool Any(const StatisticSet& set) { return std::ranges::any_of(set, std::identity()); }

// "max", "max and mean", "max, min and mean".
std::string NamesOf(const StatisticSet& set) {
  std::string text;
  const auto count = static_cast<size_t>(std::ranges::count(set, true));
  size_t shown = 0;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (!set[i]) continue;
    if (shown > 0) text += shown + 1 == count ? " and " : ", ";
    text += kNames[i];
    ++shown;
  }
  return text;
}

}  // namespace

bool StatisticChoice::is_complete() const { return !Any(target_lacks) && !Any(golden_lacks); }

StatisticSet StatisticChoice::left_out() const {
  StatisticSet set{};
  for (size_t i = 0; i < set.size(); ++i) set[i] = target_lacks[i] || golden_lacks[i];
  return set;
}

StatisticChoice ChoiceOf(std::span<const ComparedRow> rows) {
  Counts target, golden;
  for (const ComparedRow& row : rows) {
    Count(row.target, target);
    Count(row.golden, golden);
    if (target.HasAll() && golden.HasAll()) return {};
  }
  StatisticChoice choice;
  size_t left = 0;
  for (size_t i = 0; i < kNames.size(); ++i) {
    choice.target_lacks[i] = target.Lacks(i) && golden.there[i] > 0;
    choice.golden_lacks[i] = golden.Lacks(i) && target.there[i] > 0;
    left += target.there[i] > 0 && golden.there[i] > 0 ? 1 : 0;
  }
  return left > 0 ? choice : StatisticChoice();
}

std::string ChoiceText(const StatisticChoice& choice) {
  std::string text;
  const auto add = [&](std::string_view side, const StatisticSet& lacks) {
    if (!Any(lacks)) return;
    text += fmt::format("{}the {} has no {}", text.empty() ? "" : ", ", side, NamesOf(lacks));
  };
  add("target", choice.target_lacks);
  add("golden", choice.golden_lacks);
  StatisticSet compared = choice.left_out();
  for (bool& each : compared) each = !each;
  return fmt::format("{}: only {} {} compared", text, NamesOf(compared),
                     std::ranges::count(compared, true) == 1 ? "was" : "were");
}

namespace {

constexpr std::string_view kMarkOfXor = "0x";

bool IsHexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

}  // namespace

DigestKind DigestKindOf(std::span<const ComparedRow> rows) {
  DigestKind kind = DigestKind::kChecksum;
  for (const ComparedRow& row : rows) {
    for (const Slot<Item>* const item : {&row.target, &row.golden}) {
      if (!*item) continue;
      std::string_view digest = (*item)->digest;
      if (digest.starts_with(kMarkOfXor)) {
        if ((*item)->is_tensor) kind = DigestKind::kXor;
        digest.remove_prefix(kMarkOfXor.size());
      }
      if (!IsHexadecimal(digest) && (*item)->has_recorded_digest) return DigestKind::kLogged;
    }
  }
  return kind;
}

bool AreOfOneForm(std::string_view digest, std::string_view other) {
  // CRC-32, what summary_mode "digest" writes, and "xor"; others are not known apart.
  constexpr size_t kCrc = 8, kDigest = 32;
  const auto form_of = [](std::string_view text) -> size_t {
    if (text.starts_with(kMarkOfXor)) return 1;
    const bool is_known = text.size() == kCrc || text.size() == kDigest;
    return is_known && IsHexadecimal(text) ? text.size() : 0;
  };
  const size_t form = form_of(digest), of_other = form_of(other);
  return form == of_other || form == 0 || of_other == 0;
}

bool MayLackMean(const Item& item) {
  const std::optional<DType> dtype = item.dtype ? ParseDType(*item.dtype) : std::nullopt;
  if (!dtype) return false;
  return InfoOf(*dtype).kind != DTypeKind::kFloat || *dtype == DType::kFloat64 ||
         InfoOf(*dtype).size_bytes == 1;
}

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

namespace {

Recorded ToRecorded(const Statistic& statistic) {
  return std::visit([](const auto& value) { return Recorded(value); }, statistic);
}

}  // namespace

void TakeStatistics(const TensorView& view, Item& item) {
  const kernels::TensorScan scan = kernels::ScanTensor(view, {});
  const TensorStats stats = ComputeStats(view.dtype, scan.moments, view.sizes.empty());
  item.statistics = {ToRecorded(stats.max), ToRecorded(stats.min), ToRecorded(stats.mean),
                     ToRecorded(stats.norm)};
  std::array<Recorded, 2> finite;
  if (stats.max_finite) finite[0] = ToRecorded(*stats.max_finite);
  if (stats.min_finite) finite[1] = ToRecorded(*stats.min_finite);
  if (stats.max_finite || stats.min_finite) item.finite_extremes = finite;
}

}  // namespace plumbline::measure

namespace plumbline::measure {
namespace {

constexpr size_t kMax = 0;
constexpr size_t kMin = 1;
constexpr size_t kMean = 2;
constexpr size_t kNorm = 3;

// |a - b| / scale with 0/0 = 0, and infinity where only one side is finite.
double Relative(double a, double b, double scale) {
  if (a == b) return 0;  // also equal infinities
  if (std::isnan(a) && std::isnan(b)) return 0;
  const double difference = std::abs(a - b);
  if (!std::isfinite(difference) || !(scale > 0)) return std::numeric_limits<double>::infinity();
  return difference / scale;
}

}  // namespace

StatisticDifferences CompareStatistics(const std::array<Recorded, 4>& target,
                                       const std::array<Recorded, 4>& golden) {
  StatisticDifferences result;
  for (size_t i = 0; i < target.size(); ++i) {
    const std::optional<double> a = NumberOf(target[i]);
    const std::optional<double> b = NumberOf(golden[i]);
    if (!a || !b) continue;
    const double difference = *a - *b;
    result.difference[i] = difference;
    if (std::isnan(difference)) {
      result.relative_percent[i] = difference;
    } else if (*b == 0) {
      result.relative_percent[i] = Absent::kZeroNorm;
    } else {
      result.relative_percent[i] = std::abs(difference / *b * 100);
    }
  }
  return result;
}

bool BreachesWarningRule(const std::array<Recorded, 4>& target,
                         const std::array<Recorded, 4>& golden) {
  for (size_t i = 0; i < target.size(); ++i) {
    const std::optional<double> a = NumberOf(target[i]);
    const std::optional<double> b = NumberOf(golden[i]);
    if (!a || !b) continue;
    if (std::isfinite(*a) != std::isfinite(*b)) return true;
    const double larger = std::max(std::abs(*a), std::abs(*b));
    if (std::abs(*a - *b) / (larger + kWarningRegulator) > kWarningRatio) return true;
  }
  return false;
}

double StatisticError(const std::array<Recorded, 4>& target, const std::array<Recorded, 4>& golden,
                      int64_t element_count) {
  std::array<std::optional<double>, 4> a;
  std::array<std::optional<double>, 4> b;
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = NumberOf(target[i]);
    b[i] = NumberOf(golden[i]);
  }
  const double magnitude = std::max(std::abs(b[kMax].value_or(0)), std::abs(b[kMin].value_or(0)));
  const double norm = std::abs(b[kNorm].value_or(0));
  const double root_mean_square = std::isfinite(norm) && norm > 0
                                      ? norm / std::sqrt(static_cast<double>(element_count))
                                      : magnitude;
  const std::array<double, 4> scale = {magnitude, magnitude, root_mean_square, norm};
  // Averages over many elements: rounding changes them less than single elements.
  const double average = element_count >= kManyElements ? kAverageWeight : 1;
  const std::array<double, 4> weight = {1, 1, average, average};
  double error = 0;
  for (const size_t i : {kMax, kMin, kMean, kNorm}) {
    if (a[i] && b[i]) error = std::max(error, weight[i] * Relative(*a[i], *b[i], scale[i]));
  }
  return error;
}

}  // namespace plumbline::measure

namespace plumbline {

StatisticDifferences ComparedRow::statistics() const {
  if (!target || !golden) return {};
  return measure::CompareStatistics(target->statistics, golden->statistics);
}

}  // namespace plumbline
