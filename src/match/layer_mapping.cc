#include "match/layer_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "match/call_align.h"
#include "match/name_match.h"
#include "record/call_name.h"

namespace plumbline::match {
namespace {

using Path = std::vector<std::string>;
constexpr std::string_view kTop = "TopLayer";

Path Split(std::string_view text) {
  const std::vector<std::string_view> parts = SplitAt(text, '.');
  return {parts.begin(), parts.end()};
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Where one call stands.
struct Place {
  Path path;  // from the model down; the first field is the root's
  std::string class_name;
  std::string state;  // forward, backward, parameters_grad
};

Error TooShort(std::string_view name) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: a name without place in the model (expected at least four fields). "
                           "Compare without a layer mapping",
                           name));
}

Path Without(const Path& fields, size_t count) {
  return {fields.begin(), fields.end() - static_cast<std::ptrdiff_t>(count)};
}

// The framework's function that the user's code called: part of an API's place.
std::string FunctionOfStack(const std::vector<std::string>& lines, bool is_mindspore) {
  const auto is_end = [&](const std::string& line) {
    if (is_mindspore) return Contains(line, "construct");
    return Contains(line, "in forward,") || Contains(line, "in backward,");
  };
  const auto end = std::find_if(lines.begin(), lines.end(), is_end);
  auto begin = lines.begin();
  for (auto line = lines.begin(); line != end; ++line) {
    if (Contains(*line, "Template")) begin = line + 1;
  }
  const std::string* entry = nullptr;
  for (auto line = begin; line != end; ++line) {
    const std::string_view file = std::string_view(*line).substr(0, line->find(','));
    const bool inside = Contains(file, "site-packages/torch") || Contains(file, "package/torch") ||
                        Contains(file, "site-packages/mindspore") ||
                        Contains(file, "package/mindspore");
    if (!inside) break;
    entry = &*line;
  }
  if (entry == nullptr) return {};
  const size_t first = entry->find(',');
  const size_t second = first == std::string::npos ? first : entry->find(',', first + 1);
  if (second == std::string::npos) return {};
  const std::string_view file = std::string_view(*entry).substr(0, first);
  std::string_view function = std::string_view(*entry).substr(second + 1);
  function = function.substr(0, function.find(','));
  constexpr std::string_view kIn = " in ";
  if (Contains(file, "msprobe") || Contains(file, "MindSpeed")) return {};
  if (Contains(function, "construct") || Contains(function, "__call__")) return {};
  if (!function.starts_with(kIn)) return {};
  function.remove_prefix(kIn.size());
  return std::string(function.substr(0, function.find(' ')));
}

Result<Place> PlaceOfApi(const LayerSide& side, const CallItems& call, const Path& fields) {
  Place place;
  const std::string_view parent = side.parent_of(call.name);
  place.path = parent.empty() ? Path{std::string(kTop)} : Split(parent);
  if (!parent.empty() && place.path.size() < 4) return TooShort(parent);
  if (!parent.empty()) place.path = Without(place.path, 3);
  if (fields[0] != "Primitive" && fields[0] != "Jit") {
    std::string function = FunctionOfStack(side.stack_of(call.name), side.is_mindspore);
    if (!function.empty()) place.path.push_back(std::move(function));
  }
  place.class_name = fields[fields.size() - 3];
  place.state = fields.back();
  place.path.push_back(place.class_name);
  return place;
}

Result<Place> PlaceOf(const LayerSide& side, const CallItems& call) {
  Path fields = Split(call.name);
  if (fields.size() > 1 && IsDigits(fields.back()) &&
      fields[fields.size() - 2] == "parameters_grad") {
    fields.pop_back();
  }
  if (fields.size() < 4) return TooShort(call.name);
  const size_t count = fields.size();
  if (fields.back() == "parameters_grad") {
    return Place{Without(fields, 2), fields[count - 2], fields.back()};
  }
  if (fields[0] == "Cell" || fields[0] == "Module") {
    return Place{Without(fields, 3), fields[count - 3], fields[count - 2]};
  }
  return PlaceOfApi(side, call, fields);
}

// A backward call stands where its forward call does.
void TakePlacesOfForward(const LayerSide& side, std::vector<Place>& places) {
  std::unordered_map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < side.calls.size(); ++i) by_name.emplace(side.calls[i].name, i);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].state != "backward") continue;
    std::string name = side.calls[i].name;
    const size_t at = name.rfind("backward");
    name.replace(at, std::string_view("backward").size(), "forward");
    const auto found = by_name.find(name);
    if (found != by_name.end()) places[i].path = places[found->second].path;
  }
}

// The last number inside a text.
std::optional<int64_t> LastNumber(const std::string& text) {
  const size_t last = text.find_last_of("0123456789");
  if (last == std::string::npos) return std::nullopt;
  const size_t before = text.find_last_not_of("0123456789", last);
  const size_t first = before == std::string::npos ? 0 : before + 1;
  if (last - first > 8) return std::nullopt;
  return std::stoll(text.substr(first, last + 1 - first));
}

// With pipeline parallelism one side counts layers over the whole model and the other from 0.
void RenumberLayers(std::vector<Place>& places) {
  std::map<Path, int64_t> smallest;  // by the path of the list of layers
  for (const Place& place : places) {
    if (place.class_name != "ParallelTransformer") continue;
    Path list = place.path;
    list.emplace_back("layers");
    smallest.emplace(std::move(list), std::numeric_limits<int64_t>::max());
  }
  if (smallest.empty()) return;
  const auto for_each_layer = [&](const auto& visit) {
    for (Place& place : places) {
      for (size_t depth = 1; depth < place.path.size(); ++depth) {
        if (place.path[depth - 1] != "layers") continue;
        const Path list(place.path.begin(),
                        place.path.begin() + static_cast<std::ptrdiff_t>(depth));
        const auto found = smallest.find(list);
        const std::optional<int64_t> number = LastNumber(place.path[depth]);
        if (found != smallest.end() && number) visit(place.path[depth], *number, found->second);
      }
    }
  };
  for_each_layer(
      [](std::string&, int64_t number, int64_t& least) { least = std::min(least, number); });
  for_each_layer([](std::string& item, int64_t number, int64_t& least) {
    item = std::to_string(number - least);
  });
}

struct Node {
  std::string class_name;
  std::map<std::string, std::unique_ptr<Node>> children;
  std::map<std::string, std::vector<size_t>> calls;  // by state, in recorded order

  const Node* Child(const std::string& name) const {
    const auto found = children.find(name);
    return found == children.end() ? nullptr : found->second.get();
  }
};

Result<std::vector<Place>> PlacesOf(const LayerSide& side) {
  std::vector<Place> places;
  places.reserve(side.calls.size());
  for (const CallItems& call : side.calls) {
    PL_TRY_ASSIGN(Place place, PlaceOf(side, call));
    places.push_back(std::move(place));
  }
  TakePlacesOfForward(side, places);
  RenumberLayers(places);
  return places;
}

Node TreeOf(const std::vector<Place>& places) {
  Node root;
  root.class_name = kTop;
  for (size_t i = 0; i < places.size(); ++i) {
    Node* node = &root;
    for (size_t depth = 1; depth < places[i].path.size(); ++depth) {
      std::unique_ptr<Node>& child = node->children[places[i].path[depth]];
      if (child == nullptr) child = std::make_unique<Node>();
      node = child.get();
    }
    node->calls[places[i].state].push_back(i);
    if (node != &root) node->class_name = places[i].class_name;
  }
  return root;
}

struct PathRule {
  Path target, golden;
};
using RuleTable = std::unordered_map<std::string, std::vector<PathRule>>;  // by class

RuleTable TableOf(const std::vector<LayerRules>& rules) {
  RuleTable table;
  for (const LayerRules& of_class : rules) {
    std::vector<PathRule>& list = table[of_class.class_name];
    for (const auto& [target, golden] : of_class.paths) {
      list.push_back({Split(target), Split(golden)});
    }
    std::ranges::stable_sort(list, [](const PathRule& a, const PathRule& b) {
      return a.target.size() > b.target.size();
    });
  }
  return table;
}

const PathRule* FindRule(const RuleTable& table, const Node& node, const Path& path, size_t depth) {
  const auto found = table.find(node.class_name);
  if (found == table.end()) return nullptr;
  for (const PathRule& rule : found->second) {
    if (rule.target.size() > path.size() - depth) continue;
    if (std::equal(rule.target.begin(), rule.target.end(),
                   path.begin() + static_cast<std::ptrdiff_t>(depth))) {
      return &rule;
    }
  }
  return nullptr;
}

// The golden call at the place of target call `index`.
std::optional<size_t> Counterpart(const Place& place, size_t index, const RuleTable& table,
                                  const Node& target_root, const Node& golden_root) {
  const Node* node = &target_root;
  const Node* golden = &golden_root;
  for (size_t depth = 1; depth < place.path.size() && golden != nullptr;) {
    const PathRule* rule = FindRule(table, *node, place.path, depth);
    const size_t levels = rule == nullptr ? 1 : rule->target.size();
    for (size_t i = 0; i < levels; ++i) node = node->Child(place.path[depth + i]);
    const Path step = rule == nullptr ? Path{place.path[depth]} : rule->golden;
    for (const std::string& name : step) {
      golden = golden == nullptr ? nullptr : golden->Child(name);
    }
    depth += levels;
  }
  if (golden == nullptr) return std::nullopt;
  const std::vector<size_t>& calls = node->calls.at(place.state);
  const auto position = static_cast<size_t>(std::ranges::find(calls, index) - calls.begin());
  const auto found = golden->calls.find(place.state);
  if (found == golden->calls.end() || position >= found->second.size()) return std::nullopt;
  return found->second[position];
}

const Item* ItemOfPart(std::string_view part, const CallItems& golden) {
  for (const Item& other : golden.items) {
    const auto other_part = ItemPart(other.name, golden.name);
    if (other_part && SamePart(part, *other_part)) return &other;
  }
  return nullptr;
}

const Item* SameItem(const CallItems& target, const Item& item, const CallItems& golden,
                     bool may_rename) {
  const auto part = ItemPart(item.name, target.name);
  const Item* same = part ? ItemOfPart(*part, golden) : nullptr;
  if (same != nullptr || !part || !may_rename || !IsModuleCall(target.name)) return same;
  const auto renamed = ParameterInTorch(*part);
  return renamed ? ItemOfPart(*renamed, golden) : nullptr;
}

}  // namespace

Result<TextPairs> DataMappingByLayers(const LayerSide& target, const LayerSide& golden,
                                      const std::vector<LayerRules>& rules) {
  PL_TRY_ASSIGN(const std::vector<Place> places, PlacesOf(target));
  PL_TRY_ASSIGN(const std::vector<Place> golden_places, PlacesOf(golden));
  const Node root = TreeOf(places);
  const Node golden_root = TreeOf(golden_places);
  const RuleTable table = TableOf(rules);
  const bool may_rename = target.is_mindspore && !golden.is_mindspore;
  TextPairs pairs;
  for (size_t i = 0; i < target.calls.size(); ++i) {
    const std::optional<size_t> j = Counterpart(places[i], i, table, root, golden_root);
    for (const Item& item : target.calls[i].items) {
      const Item* other =
          j ? SameItem(target.calls[i], item, golden.calls[*j], may_rename) : nullptr;
      pairs.emplace_back(item.name, other == nullptr ? CallItems::kNoPart : other->name.view());
    }
  }
  return pairs;
}

namespace {

// The four hexadecimal digits behind the "\\u" at `at`; 0 where there is none.
uint32_t EscapeAt(std::string_view text, size_t at) {
  uint32_t code = 0;
  if (at >= text.size() || text.substr(at, 2) != "\\u") return 0;
  std::from_chars(text.data() + at + 2, text.data() + std::min(at + 6, text.size()), code, 16);
  return code;
}

// A double-quoted YAML text. Its escapes are those of JSON, but for characters above U+FFFF, which
// have eight digits; half of such a character, which YAML cannot hold, is a replacement character.
std::string Quoted(std::string_view name) {
  std::string json_text, text;
  json::AppendString(name, json_text);
  for (size_t at = 0; at < json_text.size();) {
    const uint32_t code = json_text[at] == '\\' ? EscapeAt(json_text, at) : 0;
    if (code >= 0xD800 && code < 0xE000) {
      const uint32_t next = EscapeAt(json_text, at + 6);
      const bool is_pair = code < 0xDC00 && next >= 0xDC00 && next < 0xE000;
      text += is_pair ? fmt::format("\\U{:08x}", 0x10000 + ((code - 0xD800) << 10) + next - 0xDC00)
                      : "\\ufffd";
      at += is_pair ? 12 : 6;
      continue;
    }
    const size_t taken = json_text[at] == '\\' ? 2 : 1;  // an escaped backslash starts no escape
    text.append(json_text, at, taken);
    at += taken;
  }
  return text;
}

}  // namespace

std::string DataMappingYaml(const TextPairs& pairs) {
  static constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
  const auto written = [](const std::string& name) {
    // With a letter in front and a dot inside it can be no number, null or truth value.
    const bool plain = name == CallItems::kNoPart ||
                       (name.find_first_not_of(kPlain) == std::string::npos &&
                        name.find('.') != std::string::npos && kPlain.find(name.front()) < 52);
    return plain ? name : Quoted(name);
  };
  constexpr size_t kLongestKey = 1000;  // YAML: a key without a mark has at most 1024 characters
  std::string text;
  for (const auto& [target, golden] : pairs) {
    const std::string key = written(target);
    text += key.size() <= kLongestKey ? key + ": " : "? " + key + "\n: ";
    text += written(golden) + "\n";
  }
  return text;
}

}  // namespace plumbline::match
