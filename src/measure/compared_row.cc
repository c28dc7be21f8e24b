#include "measure/compared_row.h"

#include <cmath>
#include <optional>

#include "record/recorded_number.h"

namespace plumbline::measure {

double ElementsOf(const Item& item) {
  const Result<int64_t> count = ElementCount(item.shape);
  return count ? static_cast<double>(*count) : 0;
}

bool IsAllZero(const Item& item) {
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  return max && min && *max == 0 && *min == 0;
}

bool HasNonFinite(const Item& item) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::optional<double> value = NumberOf(item.statistics[i]);
    if (value && !std::isfinite(*value)) return true;
  }
  return false;
}

std::string_view ShortName(const Item& item, std::string_view call_name) {
  std::string_view name = item.name;
  if (name.starts_with(call_name) && name.size() > call_name.size() + 1) {
    name.remove_prefix(call_name.size() + 1);
  }
  return name;
}

}  // namespace plumbline::measure
