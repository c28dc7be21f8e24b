#include "formats/json/vis_source.h"

#include <algorithm>
#include <array>

namespace plumbline::vis {
namespace {

std::optional<Level> NamedLevel(const json::Value& band) {
  const json::Value* const name = band.Find("accuracy_level");
  const std::string* const text = name == nullptr ? nullptr : name->AsText();
  if (text == nullptr) return std::nullopt;
  for (const Level level : {Level::kPass, Level::kWarning, Level::kError}) {
    if (*text == LevelName(level)) return level;
  }
  return std::nullopt;
}

// Of `count` colours from the lightest on.
Level LevelByPlace(size_t at, size_t count) {
  if (at == 0) return Level::kPass;
  return at == 1 && count > 2 ? Level::kWarning : Level::kError;
}

}  // namespace

LevelScale LevelScale::Of(const json::Value& colors) {
  LevelScale scale;
  const json::Value::Members* const members = colors.AsMembers();
  if (members == nullptr) return scale;
  std::vector<std::optional<Level>> named;
  for (const json::Member& member : *members) {
    const json::Value* const range = member.value.Find("value");
    const json::Value::List* const bounds = range == nullptr ? nullptr : range->AsList();
    if (bounds == nullptr || bounds->size() != 2) continue;  // grey has no range
    const std::optional<double> low = (*bounds)[0].AsReal(), high = (*bounds)[1].AsReal();
    if (!low || !high) continue;
    scale.bands_.push_back({*low, *high, Level::kPass});
    named.push_back(NamedLevel(member.value));
  }
  for (size_t i = 0; i < named.size(); ++i) {
    scale.bands_[i].level = named[i].value_or(LevelByPlace(i, named.size()));
  }
  return scale;
}

std::optional<Level> LevelScale::LevelOf(double index) const {
  for (const Band& band : bands_) {
    const bool is_within =
        band.low == band.high ? index == band.low : index >= band.low && index < band.high;
    const bool is_end = (index == 1 && band.high == 1) || (index == 0 && band.low == 0);
    if (is_within || is_end) return band.level;
  }
  return std::nullopt;
}

std::string_view FileHead::Fact(std::string_view key) const {
  const auto found = std::ranges::find(
      facts, key, [](const auto& fact) -> const std::string& { return fact.first; });
  return found == facts.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view WithoutSide(std::string_view name) {
  constexpr std::array<std::string_view, 2> kSides = {"N___", "B___"};
  for (const std::string_view side : kSides) {
    if (name.starts_with(side)) name.remove_prefix(side.size());
  }
  return name;
}

NodeType NodeTypeOf(int64_t number) {
  for (const NodeType type : {NodeType::kApi, NodeType::kFused, NodeType::kCollection}) {
    if (number == static_cast<int64_t>(type)) return type;
  }
  return NodeType::kModule;
}

}  // namespace plumbline::vis
