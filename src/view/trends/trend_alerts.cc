#include "view/trends/trend_alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace plumbline::view {
namespace {

constexpr double kMostDeviations = 4, kMostRatio = 10;
constexpr size_t kLeastValues = 5;
constexpr double kLeastDeviation = 1e-3;  // of the mean

}  // namespace

std::string_view TrendAlertName(TrendAlertKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"nan", "inf", "z", "ratio"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<TrendAlert> TrendWatch::Add(double value) {
  if (std::isnan(value)) return TrendAlert{TrendAlertKind::kNan, value};
  if (std::isinf(value)) return TrendAlert{TrendAlertKind::kInf, value};
  const std::optional<TrendAlert> alert = Judge(value);
  if (values_.size() < window_) {
    values_.push_back(value);
  } else {
    values_[next_] = value;
    next_ = (next_ + 1) % window_;
  }
  return alert;
}

std::optional<TrendAlert> TrendWatch::Judge(double value) const {
  if (values_.size() < kLeastValues) return std::nullopt;
  const auto count = static_cast<double>(values_.size());
  double sum = 0, squares = 0;
  for (const double each : values_) sum += each;
  const double mean = sum / count;
  for (const double each : values_) squares += (each - mean) * (each - mean);
  const double deviation = std::max(std::sqrt(squares / count), kLeastDeviation * std::fabs(mean));
  TrendAlert alert{TrendAlertKind::kDeviates, value};
  alert.z = deviation > 0 ? (value - mean) / deviation : 0;
  std::vector<double> magnitudes;
  for (const double each : values_) magnitudes.push_back(std::fabs(each));
  const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
  std::ranges::nth_element(magnitudes, middle);
  alert.ratio = *middle > 0 ? std::fabs(value) / *middle : 0;
  // All were 0: anything else is a jump.
  const bool jumps = alert.ratio > kMostRatio || (*middle == 0 && deviation == 0 && value != 0);
  if (jumps) alert.kind = TrendAlertKind::kJumps;
  if (jumps || std::fabs(alert.z) > kMostDeviations) return alert;
  return std::nullopt;
}

std::string TrendRule(size_t window) {
  return fmt::format(
      "NaN or infinity; more than {} standard deviations from the mean of the {} finite values "
      "before it; more than {} times their median magnitude",
      kMostDeviations, window, kMostRatio);
}

}  // namespace plumbline::view
