#include "watch/rules/facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/text/number_text.h"

namespace plumbline::watch {
namespace {

constexpr std::array<std::string_view, kReasonCount> kWords = {
    "nan",        "inf",   "no_prev", "prev_nan", "prev_inf",        "prev_shape",
    "empty",      "missing", "dtype", "statistics_only", "unreadable", "nan_or_none"};
constexpr Interval::Number kHuge = std::numeric_limits<Interval::Number>::infinity();

template <class T>
size_t PlaceIn(std::vector<T>& list, const T& value) {
  const auto found = std::ranges::find(list, value);
  if (found != list.end()) return static_cast<size_t>(found - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

// Rounding of the formulas themselves.
Interval Wider(const Interval& a) {
  constexpr Interval::Number kRounding = 1e-15L;
  return {a.low - std::fabs(a.low) * kRounding, a.high + std::fabs(a.high) * kRounding};
}

}  // namespace

std::string_view ReasonWord(int number) { return kWords[static_cast<size_t>(number)]; }

std::string ReasonText(Reasons reasons) {
  std::string text;
  for (int i = 0; i < kReasonCount; ++i) {
    if ((reasons >> i & 1) == 0) continue;
    if (!text.empty()) text += ' ';
    text += ReasonWord(i);
  }
  return text;
}

int UpstreamCode(Reasons reasons) {
  constexpr int kNothingThere = 32;
  const int bits = reasons & (kNan | kInf | kNoPrev);
  return (reasons & (kEmpty | kMissing | kNanOrNone)) != 0 ? bits | kNothingThere : bits;
}

size_t ScanWishes::PlaceOf(const ValueRange& range) { return PlaceIn(ranges, range); }
size_t ScanWishes::PlaceOf(const Closeness& closeness) { return PlaceIn(closenesses, closeness); }

Interval TensorFacts::MaxMagnitude() const {
  const Interval a = Magnitudes(max), b = Magnitudes(min);
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}

Interval TensorFacts::PartIn(const ValueRange& range, size_t place) const {
  constexpr Interval::Number kAll = 100;
  if (place < range_percentages.size()) return range_percentages[place];
  const auto within = [&](const Interval& a) {
    return range.start <= a.low && a.high <= range.end;
  };
  const auto outside = [&](const Interval& a) { return a.high < range.start || a.low > range.end; };
  if (within(max) && within(min)) return Interval::Of(kAll);
  if (max.high < range.start || min.low > range.end) return Interval::Of(0);
  Interval part{0, kAll};
  if (!count || *count == 0) return part;
  const auto n = static_cast<Interval::Number>(*count);
  // One end is 0 and the other one beyond the extreme: the counts of signs decide.
  if (positives && range.start <= min.low && range.end == 0) {
    return Interval::Of(kAll * (n - static_cast<Interval::Number>(*positives)) / n);
  }
  if (negatives && range.start == 0 && range.end >= max.high) {
    return Interval::Of(kAll * (n - static_cast<Interval::Number>(*negatives)) / n);
  }
  const int seen_in = (within(max) ? 1 : 0) + (within(min) ? 1 : 0);
  const int seen_out = (outside(max) ? 1 : 0) + (outside(min) ? 1 : 0);
  // The two extremes of one element are the same one.
  if (seen_in > 0) part.low = kAll / n;
  if (seen_out > 0) part.high = kAll * (n - (seen_out == 2 && n > 1 ? 2 : 1)) / n;
  return part.low <= part.high ? part : Interval{0, kAll};
}

double PrintedSlack(double value, int digits) {
  constexpr int kExact = 16;
  if (value == 0 || !std::isfinite(value)) return 0;
  const std::string text = PythonFloat(std::fabs(value));
  // Digits of the shortest text, without zeros at either end.
  std::string shown;
  for (const char c : text.substr(0, text.find('e'))) {
    if (c >= '0' && c <= '9') shown += c;
  }
  const size_t first = shown.find_first_not_of('0'), last = shown.find_last_not_of('0');
  const int has = first == std::string::npos ? 1 : static_cast<int>(last - first) + 1;
  const int counted = std::max(has, digits);
  if (counted >= kExact) return 0;
  const double exponent = std::floor(std::log10(std::fabs(value)));
  return 0.5 * std::pow(10.0, exponent - counted + 1) / std::fabs(value);
}

namespace {

// Builds the numbers of a TensorFacts from what was recorded, each from those before it.
class FactMaker {
 public:
  explicit FactMaker(const RecordedStatistics& recorded) : in_(recorded) {}

  TensorFacts Run() {
    out_.dtype = in_.dtype;
    out_.shape = in_.shape;
    out_.digest = in_.digest;
    out_.negatives = in_.negative_count;
    out_.positives = in_.positive_count;
    TakeCount();
    TakeNonfinite();
    TakeExtremes();
    TakeSums();
    TakeZeros();
    return std::move(out_);
  }

 private:
  void TakeCount() {
    out_.count = in_.count;
    if (out_.count || !in_.shape) return;
    const auto count = ElementCount(*in_.shape);
    if (count) out_.count = static_cast<uint64_t>(*count);
  }

  [[nodiscard]] bool CannotHoldNan() const {
    if (!in_.dtype) return false;
    const DTypeKind kind = InfoOf(*in_.dtype).kind;
    return kind == DTypeKind::kBool || kind == DTypeKind::kSigned || kind == DTypeKind::kUnsigned;
  }

  void TakeNonfinite() {
    if (in_.nan_count) out_.nan_count = Interval::Of(static_cast<Interval::Number>(*in_.nan_count));
    if (in_.inf_count) out_.inf_count = Interval::Of(static_cast<Interval::Number>(*in_.inf_count));
    if (in_.nan_count) out_.has_nan = TruthOf(*in_.nan_count > 0);
    if (in_.inf_count) out_.has_inf = TruthOf(*in_.inf_count > 0);
    const bool is_whole = CannotHoldNan();
    // NaN goes through sums, and a norm of finite numbers is none.
    bool shows_nan = !is_whole && in_.norm && std::isnan(*in_.norm), shows_inf = false;
    bool is_finite = is_whole;
    for (const auto& value : {in_.max, in_.min}) {
      if (!value) continue;
      shows_nan = shows_nan || std::isnan(*value);
      shows_inf = shows_inf || std::isinf(*value);
    }
    if (in_.max && in_.min) {
      is_finite = is_finite || (!shows_nan && !shows_inf);
    }
    // NaN and infinities go through sums; a finite one tells of none.
    for (const auto& value : {in_.mean, in_.norm}) {
      is_finite = is_finite || (value && std::isfinite(*value));
    }
    // The mean of finite numbers may be one where their sum is too large.
    shows_nan = shows_nan || (!is_finite && in_.mean && std::isnan(*in_.mean));
    if (in_.shows_nan) out_.has_nan = Truth::kTrue;
    if (in_.shows_inf) out_.has_inf = Truth::kTrue;
    if (out_.has_nan == Truth::kUnknown && shows_nan) out_.has_nan = Truth::kTrue;
    if (out_.has_inf == Truth::kUnknown && shows_inf && !in_.may_overflow) {
      out_.has_inf = Truth::kTrue;
    }
    if (is_finite) {
      if (out_.has_nan == Truth::kUnknown) out_.has_nan = Truth::kFalse;
      if (out_.has_inf == Truth::kUnknown) out_.has_inf = Truth::kFalse;
    }
    Bound(out_.has_nan, out_.nan_count);
    Bound(out_.has_inf, out_.inf_count);
  }

  void Bound(Truth has, Interval& count) const {
    const auto most = out_.count ? static_cast<Interval::Number>(*out_.count) : kHuge;
    if (has == Truth::kFalse) count = Interval::Of(0);
    if (count.is_point()) return;
    count = {has == Truth::kTrue ? Interval::Number{1} : Interval::Number{0}, most};
  }

  [[nodiscard]] Interval Extreme(const std::optional<double>& value,
                                 const std::optional<double>& finite,
                                 const std::optional<int64_t>& whole) const {
    if (whole) return Interval::Of(static_cast<Interval::Number>(*whole));
    const std::optional<double>& used = value && std::isfinite(*value) ? value : finite;
    if (!used || !std::isfinite(*used)) return {};
    return Around(*used, std::fabs(*used) * in_.relative_slack + in_.absolute_slack);
  }

  void TakeExtremes() {
    out_.max = Extreme(in_.max, in_.finite_max, in_.whole_max);
    out_.min = Extreme(in_.min, in_.finite_min, in_.whole_min);
    const bool is_bool = in_.dtype == DType::kBool;
    if (is_bool) {
      out_.max = Both(out_.max, {0, 1});
      out_.min = Both(out_.min, {0, 1});
    }
  }

  [[nodiscard]] Interval Sum(const std::optional<double>& value) const {
    if (!value || !std::isfinite(*value)) return {};
    return Around(*value, std::fabs(*value) * in_.mean_slack + in_.absolute_slack +
                              in_.sum_absolute_slack);
  }

  void TakeSums() {
    const bool is_exact = !(out_.has_nan == Truth::kTrue || out_.has_inf == Truth::kTrue);
    if (!is_exact) {  // sums are over all elements, of which some are no numbers
      out_.abs_mean = {0, out_.MaxMagnitude().high};
      return;
    }
    out_.norm = Sum(in_.norm);
    out_.norm.low = std::max<Interval::Number>(out_.norm.low, 0);
    out_.mean = Sum(in_.mean);
    TakeAbsMean();
    TakeDeviation();
    // A mean lies between the extremes, wherever else it is not known.
    if (!in_.mean) out_.mean = {out_.min.low, out_.max.high};
    if (!in_.norm && out_.count) {
      const auto n = static_cast<Interval::Number>(*out_.count);
      out_.norm = {out_.MaxMagnitude().low, out_.MaxMagnitude().high * std::sqrt(n)};
    }
  }

  void TakeAbsMean() {
    const Interval most = out_.MaxMagnitude();
    const auto n = static_cast<Interval::Number>(out_.count.value_or(0));
    Interval bounds{0, most.high};
    if (n > 0 && out_.norm.is_bounded()) {
      bounds.high = std::min(bounds.high, out_.norm.high / std::sqrt(n));
      const Interval::Number divisor = n * most.high;
      if (divisor > 0 && divisor < kHuge) bounds.low = out_.norm.low * out_.norm.low / divisor;
    }
    bounds = Wider(bounds);
    if (in_.summation_slack > 0 && out_.mean.is_bounded()) {
      const Interval::Number by = bounds.high < kHuge ? bounds.high * in_.summation_slack : kHuge;
      out_.mean = {out_.mean.low - by, out_.mean.high + by};
    }
    const Interval of_mean = Magnitudes(out_.mean);
    const bool has_one_sign = out_.min.low >= 0 || out_.max.high <= 0;
    if (has_one_sign) {
      out_.abs_mean = Both(bounds, of_mean);
    } else {
      out_.abs_mean = Both(bounds, {of_mean.low, kHuge});
    }
    out_.abs_mean.low = std::max<Interval::Number>(out_.abs_mean.low, 0);
  }

  void TakeDeviation() {
    if (!out_.count || *out_.count == 0) return;
    const auto n = static_cast<Interval::Number>(*out_.count);
    const Interval spread = Magnitudes(out_.max - out_.min);
    out_.sd = {0, spread.high / 2};
    if (!out_.norm.is_bounded() || !out_.mean.is_bounded()) return;
    const Interval mean = Magnitudes(out_.mean);
    const Interval::Number low = out_.norm.low * out_.norm.low / n - mean.high * mean.high,
                           high = out_.norm.high * out_.norm.high / n - mean.low * mean.low;
    out_.sd = Both(out_.sd, Wider({low > 0 ? std::sqrt(low) : 0, high > 0 ? std::sqrt(high) : 0}));
  }

  void TakeZeros() {
    constexpr Interval::Number kAll = 100;
    out_.zero_percentage = {0, kAll};
    if (in_.small_fraction && std::isfinite(*in_.small_fraction)) {
      const Interval::Number part = *in_.small_fraction;
      out_.zero_percentage.high = std::min(kAll, kAll * part * (1 + 1e-6L) + kAll *
                                           static_cast<Interval::Number>(in_.absolute_slack));
    }
    if (out_.min.low > 0 || out_.max.high < 0) out_.zero_percentage = Interval::Of(0);
    const bool is_finite = out_.has_nan == Truth::kFalse && out_.has_inf == Truth::kFalse;
    if (is_finite && out_.min.is_point() && out_.max.is_point() && out_.min.low == 0 &&
        out_.max.low == 0) {
      out_.zero_percentage = Interval::Of(kAll);
    }
    if (in_.zero_count && out_.count && *out_.count > 0) {
      out_.zero_percentage =
          Interval::Of(kAll * static_cast<Interval::Number>(*in_.zero_count) /
                       static_cast<Interval::Number>(*out_.count));
    } else if (out_.zero_percentage.high == kAll && out_.count && *out_.count > 0 &&
               (out_.max.low > 0 || out_.min.high < 0)) {
      // One element at least is not 0.
      const auto n = static_cast<Interval::Number>(*out_.count);
      out_.zero_percentage.high = kAll * (n - 1) / n;
    }
  }

  const RecordedStatistics& in_;
  TensorFacts out_;
};

}  // namespace

TensorFacts FactsOf(const RecordedStatistics& recorded) { return FactMaker(recorded).Run(); }

ChangeFacts ChangeFromStatistics(const TensorFacts& now, const TensorFacts& before,
                                 const ScanWishes& wishes) {
  ChangeFacts change;
  change.mean_before = before.abs_mean;
  change.unchanged.assign(wishes.closenesses.size(), Truth::kUnknown);
  if (!now.digest.empty() && now.digest == before.digest) {
    change.mean_change = Interval::Of(0);
    std::ranges::fill(change.unchanged, Truth::kTrue);
    return change;
  }
  const Interval of_mean = Magnitudes(now.mean - before.mean),
                 of_size = Magnitudes(now.abs_mean - before.abs_mean);
  change.mean_change = {std::max(of_mean.low, of_size.low),
                        now.abs_mean.high + before.abs_mean.high};
  const Interval::Number moved =
      std::max(Magnitudes(now.max - before.max).low, Magnitudes(now.min - before.min).low);
  const Interval::Number most = before.MaxMagnitude().high;
  for (size_t i = 0; i < change.unchanged.size(); ++i) {
    const Closeness& close = wishes.closenesses[i];
    // A tolerance of 0 allows nothing, whatever it is relative to.
    const Interval::Number by = close.rtol == 0 ? 0 : close.rtol * most;
    if (moved > close.atol + by) change.unchanged[i] = Truth::kFalse;
  }
  return change;
}

}  // namespace plumbline::watch
