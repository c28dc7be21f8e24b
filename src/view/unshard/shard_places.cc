#include "view/unshard/shard_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/text/text_parts.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "view/merge/merged_values.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kParameterPlaces = "parameters.";

// The numbers of every list of modules: "model.layers" -> {0, 1, 2}.
using Lists = std::map<std::string, std::set<int64_t>, std::less<>>;

Lists ListsOf(const std::vector<std::string>& paths) {
  Lists lists;
  for (const std::string& path : paths) {
    std::string list;
    for (const std::string_view part : SplitAt(path, '.')) {
      const auto number = NaturalAfter("", part);
      if (number && !list.empty()) lists[list].insert(*number);
      if (!list.empty()) list += '.';
      list += part;
    }
  }
  return lists;
}

std::vector<std::string> ModulePaths(const RankTree& tree) {
  std::vector<std::string> paths;
  for (const Part& part : tree.parts) {
    const auto name = ParseCallName(part.name);
    if (name && name->form != CallName::Form::kApi) paths.emplace_back(name->path);
  }
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

// Parameters of modules by the path of the module and their name.
using ParameterMap = std::map<std::string, TensorRecord>;

ParameterMap ParametersOf(const RankTree& tree) {
  ParameterMap parameters;
  for (const Part& part : tree.parts) {
    const auto name = ParseCallName(part.name);
    if (!name || name->form != CallName::Form::kModule || name->kind != CallKind::kForward) {
      continue;
    }
    // Places are of a part that can be changed; nothing is.
    for (const PlacedValue& value : PlacedValuesOf(const_cast<Part&>(part))) {
      if (value.tensor == nullptr || !value.place.starts_with(kParameterPlaces)) continue;
      parameters.emplace(
          fmt::format("{}.{}", name->path, value.place.substr(kParameterPlaces.size())),
          *value.tensor);
    }
  }
  return parameters;
}

// How much a parameter of a rank says for being (a shard of) golden's; nothing: it is not.
std::optional<int64_t> Support(const TensorRecord& own, const TensorRecord& golden) {
  const auto low = NumberOf(golden.min), high = NumberOf(golden.max);
  const auto own_low = NumberOf(own.min), own_high = NumberOf(own.max);
  if (own.shape.size() != golden.shape.size()) return std::nullopt;
  if (!low || !high || !own_low || !own_high) return 0;
  if (own.shape == golden.shape) {
    if (!AgreeIn(own, golden, Sameness::kNearly)) return std::nullopt;
    return *low == *high ? 0 : 1;  // all ones are all ones everywhere
  }
  if (*own_low < *low || *own_high > *high) return std::nullopt;
  return *low != *high && (*own_low == *low || *own_high == *high) ? 1 : 0;
}

class OffsetSearch {
 public:
  OffsetSearch(const RankTree& golden, const RankTree& rank)
      : golden_lists_(ListsOf(ModulePaths(golden))),
        golden_parameters_(ParametersOf(golden)),
        paths_(ModulePaths(rank)),
        parameters_(ParametersOf(rank)) {}

  ListOffsets Run() {
    // Outer lists first: the names of inner ones depend on them.
    std::set<std::string> done;
    for (bool is_new = true; is_new;) {
      is_new = false;
      std::vector<std::string> renamed;
      for (const std::string& path : paths_) renamed.push_back(WithOffsets(path, found_));
      for (const auto& [list, numbers] : ListsOf(renamed)) {
        if (!done.insert(list).second) continue;
        const auto golden = golden_lists_.find(list);
        if (golden == golden_lists_.end() || golden->second == numbers) continue;
        Search(list, numbers, golden->second);
        is_new = true;
        break;
      }
    }
    return std::move(found_);
  }

 private:
  void Search(const std::string& list, const std::set<int64_t>& numbers,
              const std::set<int64_t>& golden) {
    ListOffset best{list, static_cast<int64_t>(numbers.size()), *numbers.begin(), 0, -1, false};
    for (const int64_t first : golden) {
      const int64_t offset = first - *numbers.begin();
      const bool fits = std::ranges::all_of(
          numbers, [&](int64_t number) { return golden.contains(number + offset); });
      if (!fits) continue;
      const std::optional<int64_t> support = SupportOf(list, offset);
      if (!support) continue;
      // Of equally good ones, that which leaves the numbers as they are.
      const bool is_better = *support > best.agreeing;
      if (*support == best.agreeing) best.is_certain = false;
      if (!is_better && !(offset == 0 && *support == best.agreeing)) continue;
      best.first = first;
      best.offset = offset;
      best.agreeing = *support;
      best.is_certain = is_better && *support > 0;
    }
    found_.insert_or_assign(list, best);
  }

  // Of all parameters below the list; nothing: one of them is another.
  std::optional<int64_t> SupportOf(const std::string& list, int64_t offset) {
    ListOffsets tried = found_;
    tried.insert_or_assign(list, ListOffset{list, 0, 0, offset, 0, false});
    int64_t support = 0;
    for (const auto& [name, own] : parameters_) {
      const std::string renamed = WithOffsets(name, tried);
      if (!renamed.starts_with(list + ".")) continue;
      const auto golden = golden_parameters_.find(renamed);
      if (golden == golden_parameters_.end()) continue;
      // Inner lists are looked for later.
      if (IsInInnerList(renamed, list)) continue;
      const auto one = Support(own, golden->second);
      if (!one) return std::nullopt;
      support += *one;
    }
    return support;
  }

  static bool IsInInnerList(std::string_view name, std::string_view list) {
    const auto parts = SplitAt(name.substr(list.size() + 1), '.');
    return std::any_of(parts.begin() + 1, parts.end(),
                       [](std::string_view part) { return NaturalAfter("", part).has_value(); });
  }

  Lists golden_lists_;
  ParameterMap golden_parameters_;
  std::vector<std::string> paths_;
  ParameterMap parameters_;
  ListOffsets found_;
};

std::string_view KindText(CallKind kind) {
  return kind == CallKind::kForward    ? "forward"
         : kind == CallKind::kBackward ? "backward"
                                       : "parameters_grad";
}

}  // namespace

ListOffsets FindOffsets(const RankTree& golden, const RankTree& rank) {
  return OffsetSearch(golden, rank).Run();
}

std::string WithOffsets(std::string_view path, const ListOffsets& offsets) {
  if (offsets.empty()) return std::string(path);
  std::string renamed;
  for (const std::string_view part : SplitAt(path, '.')) {
    const auto number = NaturalAfter("", part);
    const auto list = number ? offsets.find(renamed) : offsets.end();
    if (!renamed.empty()) renamed += '.';
    if (list != offsets.end()) {
      renamed += std::to_string(*number + list->second.offset);
    } else {
      renamed += part;
    }
  }
  return renamed;
}

std::unordered_map<std::string, Part*> PartsByPlace(RankTree& tree, const ListOffsets& offsets) {
  std::unordered_map<std::string, Part*> places;
  std::unordered_map<const Part*, std::string> place_of;
  std::map<std::string, int64_t> counts;
  place_of.emplace(&tree.root(), "");
  for (Part* const part : PartsBelow(tree.root())) {
    if (part == &tree.root()) continue;
    const auto name = ParseCallName(part->name);
    std::string place;
    if (!name) {
      place = part->name;
    } else if (name->form != CallName::Form::kApi) {
      place = fmt::format("{} {} {}", WithOffsets(name->path, offsets), KindText(name->kind),
                          name->number.value_or(0));
    } else {
      const std::string call = fmt::format("{}/{}.{} {}", place_of.at(part->parent), name->prefix,
                                           name->path, KindText(name->kind));
      place = fmt::format("{} {}", call, counts[call]++);
    }
    place_of.emplace(part, place);
    places.emplace(std::move(place), part);
  }
  return places;
}

}  // namespace plumbline::view
