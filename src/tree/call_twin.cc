#include "tree/call_twin.h"

#include <fmt/format.h>

#include "base/text/text_parts.h"

namespace plumbline::tree {
namespace {

// "Functional.linear.0" of "Functional.linear.0.backward"; nothing if the name ends otherwise.
std::optional<std::string_view> StemOfApi(std::string_view name, std::string_view direction) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.substr(dot + 1) != direction) return std::nullopt;
  return name.substr(0, dot);
}

}  // namespace

std::string DirectedName::Turned(std::string_view to, std::string_view call) const {
  return fmt::format("{}.{}.{}", stem, to, call);
}

std::optional<DirectedName> ParseDirected(std::string_view name) {
  const size_t number = name.rfind('.');
  if (number == std::string_view::npos || number == 0) return std::nullopt;
  const size_t direction = name.rfind('.', number - 1);
  if (direction == std::string_view::npos) return std::nullopt;
  const DirectedName parts{name.substr(0, direction),
                           name.substr(direction + 1, number - direction - 1),
                           name.substr(number + 1)};
  const bool is_directed = parts.direction == kForward || parts.direction == kBackward;
  return is_directed && IsDigits(parts.number) ? std::optional(parts) : std::nullopt;
}

std::optional<std::string> ForwardOf(std::string_view name) {
  if (const auto parts = ParseDirected(name)) {
    return parts->is_forward() ? std::nullopt : std::optional(parts->Turned(kForward));
  }
  const auto stem = StemOfApi(name, kBackward);
  return stem ? std::optional(fmt::format("{}.{}", *stem, kForward)) : std::nullopt;
}

std::string BackwardOf(std::string_view name) {
  if (const auto parts = ParseDirected(name)) return parts->Turned(kBackward);
  const auto stem = StemOfApi(name, kForward);
  return stem ? fmt::format("{}.{}", *stem, kBackward) : std::string(name);
}

}  // namespace plumbline::tree
