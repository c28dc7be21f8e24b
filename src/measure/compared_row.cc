#include "measure/compared_row.h"

#include <cmath>
#include <optional>

#include "record/recorded_number.h"

namespace plumbline::measure {

double ElementsOf(const Item& item) {
  const Result<int64_t> count = ElementCount(item.shape);
  return count ? static_cast<double>(*count) : 0;
}

double MeanOf(const Item& item) { return NumberOf(item.statistics[2]).value_or(std::nan("")); }

bool IsAllZero(const Item& item) {
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (max || min) return max && min && *max == 0 && *min == 0;
  return NumberOf(item.statistics[3]) == 0;
}

bool HasNonFinite(const Item& item) {
  const auto is_bad = [&](size_t i) {
    const std::optional<double> value = NumberOf(item.statistics[i]);
    return value && !std::isfinite(*value);
  };
  const bool has_extreme = NumberOf(item.statistics[0]) || NumberOf(item.statistics[1]);
  return is_bad(0) || is_bad(1) || (!has_extreme && (is_bad(2) || is_bad(3)));
}

bool HasNan(const Item& item) {
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (max || min) return (max && std::isnan(*max)) || (min && std::isnan(*min));
  // Infinities of both signs make a mean NaN, but no norm.
  const std::optional<double> norm = NumberOf(item.statistics[3]);
  const std::optional<double> rest = norm ? norm : NumberOf(item.statistics[2]);
  return rest && std::isnan(*rest);
}

bool IsNanOnBoth(const ComparedRow& row) {
  return row.reason == "nonfinite-both" && row.target && row.golden && HasNan(*row.target) &&
         HasNan(*row.golden);
}

std::string_view ShortName(const Item& item, std::string_view call_name) {
  std::string_view name = item.name;
  if (name.starts_with(call_name) && name.size() > call_name.size() + 1) {
    name.remove_prefix(call_name.size() + 1);
  }
  return name;
}

}  // namespace plumbline::measure
