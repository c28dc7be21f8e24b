#include "pipeline/culprit/content_key.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"

namespace plumbline::pipeline {

size_t ContentKeyHash::operator()(const ContentKey& key) const {
  size_t hash = std::hash<std::string_view>()(key.digest) ^ static_cast<size_t>(key.element_count);
  for (const uint64_t word : key.statistics) {
    hash = (hash ^ word) * size_t{0x9E3779B97F4A7C15};
    hash ^= hash >> 29;
  }
  return hash;
}

std::optional<ContentKey> KeyOf(const Item& item) {
  if (!item.is_tensor) return std::nullopt;
  ContentKey key;
  const Result<int64_t> count = ElementCount(item.shape);
  key.element_count = count ? *count : -1;
  if (item.has_recorded_digest) {
    key.digest = item.digest;
    return key;
  }
  bool any = false;
  for (size_t i = 0; i < key.statistics.size(); ++i) {
    if (const std::optional<double> value = NumberOf(item.statistics[i])) {
      key.statistics[i] = std::bit_cast<uint64_t>(*value);
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return key;
}

ContentKey NegativeOf(const Item& item, const ContentKey& key) {
  const auto negative = [&](size_t i) {
    const std::optional<double> value = NumberOf(item.statistics[i]);
    return value ? std::bit_cast<uint64_t>(-*value) : key.statistics[i];
  };
  ContentKey other = key;
  other.statistics = {negative(1), negative(0), negative(2), key.statistics[3]};
  // Recorders write a single number's own value as its norm, with its sign.
  if (item.shape.empty()) other.statistics[3] = negative(3);
  return other;
}

bool IsNumberLess(const Item& item, const Item& other) {
  if (measure::ElementsOf(item) != measure::ElementsOf(other)) return false;
  std::array<double, 3> sums{};
  double largest = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::array<size_t, 3> turned{1, 0, 2};
    const std::optional<double> a = NumberOf(item.statistics[i]);
    const std::optional<double> b = NumberOf(other.statistics[turned[i]]);
    if (!a || !b || !std::isfinite(*a) || !std::isfinite(*b)) return false;
    sums[i] = *a + *b;
    largest = std::max({largest, std::abs(*a), std::abs(*b)});
  }
  const double rounding = measure::kNoiseFactor * measure::RoundoffOf(item, other) * largest;
  return std::abs(sums[0] - sums[1]) <= rounding && std::abs(sums[0] - sums[2]) <= rounding;
}

bool IsTelling(const Item& item) {
  if (!item.is_tensor) return false;
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (!max || !min) return item.has_recorded_digest;
  if (*max != *min) return true;  // NaN tells: it came from somewhere
  // One number with a fraction was computed; whole numbers are counts, flags and fills.
  const Result<int64_t> count = ElementCount(item.shape);
  return count && *count == 1 && std::trunc(*max) != *max;
}

}  // namespace plumbline::pipeline
