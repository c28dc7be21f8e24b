#include "store/debug_entry.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace plumbline::debug_entry {
namespace {

// The item or member at `position`; null pointer when there is none.
Value* Child(Value& parent, size_t position) {
  if (auto* list = parent.As<ValueList>(); list != nullptr && position < list->size()) {
    return &(*list)[position];
  }
  if (auto* map = parent.As<ValueMap>(); map != nullptr && position < map->size()) {
    return &(*map)[position].second;
  }
  return nullptr;
}

Value* Find(Value& top, std::string_view place) {
  Value* value = &top;
  while (value != nullptr && !place.empty()) {
    const size_t dot = std::min(place.find('.'), place.size());
    const std::string_view digits = place.substr(0, dot);
    size_t position = 0;
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, position);
    if (parsed.ec != std::errc() || parsed.ptr != end) return nullptr;
    value = Child(*value, position);
    place.remove_prefix(std::min(dot + 1, place.size()));
  }
  return value;
}

}  // namespace

void Compose(ValueMap& members) {
  if (members.size() < 2 || !members[0].first.empty()) return;
  for (size_t i = 1; i < members.size(); ++i) {
    Value* place = Find(members[0].second, members[i].first);
    if (place != nullptr) *place = std::move(members[i].second);
  }
  members.resize(1);
}

}  // namespace plumbline::debug_entry
