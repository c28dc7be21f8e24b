#include "config/nearest_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace plumbline::settings {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string UnknownKeyWarning(std::string_view section, std::string_view key,
                              std::span<const std::string_view> known) {
  constexpr size_t kLongestKey = 100;  // not worth a guess beyond
  const std::string shown = section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
  if (key.size() > kLongestKey) {
    return fmt::format("{}...: unknown key, ignored", shown.substr(0, kLongestKey));
  }
  if (known.empty()) return fmt::format("{}: unknown key, ignored", shown);
  const auto closest = std::ranges::min_element(
      known, {}, [&](std::string_view candidate) { return EditDistance(key, candidate); });
  return fmt::format("{}: unknown key, ignored. Did you mean \"{}\"?", shown, *closest);
}

}  // namespace plumbline::settings
