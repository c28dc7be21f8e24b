#include "config/nearest_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_text.h"

namespace plumbline::settings {
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
