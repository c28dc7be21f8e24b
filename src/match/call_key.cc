#include "match/call_key.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text_parts.h"
#include "match/aten_names.h"
#include "record/call_name.h"

namespace plumbline::match {
namespace {

using Segments = std::vector<std::string_view>;

std::string Join(const Segments& segments) {
  std::string text;
  for (const std::string_view segment : segments) {
    if (!text.empty()) text += '.';
    text += segment;
  }
  return text;
}

bool IsDirection(std::string_view segment) {
  return segment == "forward" || segment == "backward" || segment == "parameters_grad";
}

// Where the direction stands: last, or last but one in front of a number.
std::optional<size_t> DirectionAt(const Segments& segments) {
  const size_t count = segments.size();
  if (count >= 1 && IsDirection(segments[count - 1])) return count - 1;
  if (count >= 2 && IsDirection(segments[count - 2]) && IsDigits(segments[count - 1])) {
    return count - 2;
  }
  return std::nullopt;
}

// Attribute names under which wrappers keep the module that they wrap.
constexpr std::array<std::string_view, 6> kWrappers = {
    "module",          "_orig_mod",          "_fsdp_wrapped_module", "_checkpoint_wrapped_module",
    "_forward_module", "_ddp_wrapped_module"};

std::string_view WithoutUnderscores(std::string_view name) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) {
    return name.substr(2, name.size() - 4);
  }
  return name.size() > 1 && name.ends_with('_') && !name.starts_with('_')
             ? name.substr(0, name.size() - 1)
             : name;
}

}  // namespace

std::string WithoutCallNumber(std::string_view call_name) {
  Segments segments = SplitAt(call_name, '.');
  const std::optional<size_t> at = DirectionAt(segments);
  if (!at) return std::string(call_name);
  if (*at + 1 < segments.size()) {
    segments.pop_back();
  } else if (*at > 0 && segments[*at] != "parameters_grad" && IsDigits(segments[*at - 1])) {
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(*at) - 1);
  }
  return Join(segments);
}

bool IsModuleCall(std::string_view call_name) {
  return call_name.starts_with("Module.") || call_name.starts_with("Cell.") ||
         call_name.find(".parameters_grad") != std::string_view::npos;
}

bool HasDirection(std::string_view call_name) {
  const size_t dot = call_name.rfind('.');
  const std::string_view last = call_name.substr(dot + 1);  // npos + 1 is 0
  if (IsDirection(last)) return true;
  if (dot == std::string_view::npos || !IsDigits(last)) return false;
  const std::string_view before = call_name.substr(0, dot);
  return IsDirection(before.substr(before.rfind('.') + 1));
}

std::string UnwrappedName(std::string_view call_name) {
  if (!IsModuleCall(call_name)) return std::string(call_name);
  const Segments segments = SplitAt(call_name, '.');
  const std::optional<size_t> at = DirectionAt(segments);
  if (!at || *at < 2) return std::string(call_name);
  Segments result;
  std::string_view class_name = segments[*at - 1];
  constexpr std::string_view kSharded = "FSDP";
  if (class_name.size() > kSharded.size() && class_name.starts_with(kSharded)) {
    class_name.remove_prefix(kSharded.size());
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool in_path = i > 0 && i + 1 < *at;
    if (i == 0 && segments[0] == "Cell") {
      result.push_back("Module");
    } else if (i + 1 == *at) {
      result.push_back(class_name);
    } else if (!in_path || std::ranges::find(kWrappers, segments[i]) == kWrappers.end()) {
      result.push_back(segments[i]);
    }
  }
  return Join(result);
}

std::string KindName(std::string_view call_name) {
  const Segments segments = SplitAt(call_name, '.');
  const std::optional<size_t> at = DirectionAt(segments);
  if (!at || *at < 2) return std::string(call_name);
  const std::string direction = "." + std::string(segments[*at]);
  if (IsModuleCall(call_name)) {
    const std::string unwrapped = UnwrappedName(call_name);
    const Segments parts = SplitAt(unwrapped, '.');
    return "module " + std::string(parts[*DirectionAt(parts) - 1]) + direction;
  }
  const std::string_view name = WithoutUnderscores(segments[1]);
  return std::string(TorchNameOfAten(name)) + direction;
}

std::optional<std::string_view> ItemPart(std::string_view item_name, std::string_view call_name) {
  if (!item_name.starts_with(call_name)) return std::nullopt;
  item_name.remove_prefix(call_name.size());
  if (item_name.empty()) return item_name;
  if (item_name.front() != '.') return std::nullopt;
  return item_name.substr(1);
}

bool SamePart(std::string_view a, std::string_view b) {
  constexpr std::string_view kKeyword = "kwargs.";
  constexpr std::string_view kInput = "input.";
  const auto tail = [&](std::string_view part) {
    if (part.starts_with(kKeyword)) return part.substr(kKeyword.size());
    return part.starts_with(kInput) ? part.substr(kInput.size()) : std::string_view();
  };
  return a == b || (!tail(a).empty() && tail(a) == tail(b));
}

}  // namespace plumbline::match
