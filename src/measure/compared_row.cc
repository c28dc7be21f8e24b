#include "measure/compared_row.h"

namespace plumbline::measure {

double ElementsOf(const Item& item) {
  const Result<int64_t> count = ElementCount(item.shape);
  return count ? static_cast<double>(*count) : 0;
}

std::string_view ShortName(const Item& item, std::string_view call_name) {
  std::string_view name = item.name;
  if (name.starts_with(call_name) && name.size() > call_name.size() + 1) {
    name.remove_prefix(call_name.size() + 1);
  }
  return name;
}

}  // namespace plumbline::measure
