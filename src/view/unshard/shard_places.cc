#include "view/unshard/shard_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  OffsetSearch(const RankTree& golden, const RankTree& rank, ToldAhead told)
      : rank_(rank.rank),
        told_(std::move(told)),
        golden_lists_(ListsOf(ModulePaths(golden))),
        golden_parameters_(ParametersOf(golden)),
        paths_(ModulePaths(rank)),
        parameters_(ParametersOf(rank)) {}

  Result<ListOffsets> Run() {
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
        const auto ahead = told_ ? told_(list, static_cast<int64_t>(numbers.size())) : std::nullopt;
        if (ahead) {
          PL_TRY(Take(list, numbers, golden->second, *golden->second.begin() + *ahead));
        } else {
          Search(list, numbers, golden->second);
        }
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
      if (!Fits(numbers, offset, golden)) continue;
      const Evidence evidence = EvidenceFor(list, offset);
      if (evidence.against > 0) continue;
      // Of equally good ones, that which leaves the numbers as they are.
      const bool is_better = evidence.agreeing > best.agreeing;
      if (evidence.agreeing == best.agreeing) best.is_certain = false;
      if (!is_better && !(offset == 0 && evidence.agreeing == best.agreeing)) continue;
      best.first = first;
      best.offset = offset;
      best.agreeing = evidence.agreeing;
      best.is_certain = is_better && evidence.agreeing > 0;
    }
    found_.insert_or_assign(list, best);
  }

  // What the user says counts where no other offset has more for it.
  Status Take(const std::string& list, const std::set<int64_t>& numbers,
              const std::set<int64_t>& golden, int64_t first) {
    const auto count = static_cast<int64_t>(numbers.size());
    const int64_t offset = first - *numbers.begin();
    const std::string said =
        fmt::format("--layout: rank {} would have {} {} to {} of golden", rank_, list, first,
                    first + *numbers.rbegin() - *numbers.begin());
    if (!Fits(numbers, offset, golden)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}, which has {} to {}", said, *golden.begin(), *golden.rbegin()));
    }
    const Evidence own = EvidenceFor(list, offset);
    ListOffset taken{list,   count,        first,
                     offset, own.agreeing, own.agreeing > 0 && own.against == 0};
    for (const int64_t other : golden) {
      const int64_t tried = other - *numbers.begin();
      if (tried == offset || !Fits(numbers, tried, golden)) continue;
      const Evidence evidence = EvidenceFor(list, tried);
      const bool is_better =
          evidence.agreeing > own.agreeing ||
          (evidence.agreeing == own.agreeing && evidence.against == 0 && own.against > 0);
      if (is_better) {
        return Error(ErrorCode::kInvalidArgument,
                     fmt::format("{}, where {} of its parameters are golden's and {} are others; "
                                 "at {} to {} {} are golden's and {} others",
                                 said, own.agreeing, own.against, other,
                                 other + *numbers.rbegin() - *numbers.begin(), evidence.agreeing,
                                 evidence.against));
      }
      if (evidence.agreeing == own.agreeing && evidence.against == own.against) {
        taken.is_certain = false;
      }
    }
    taken.is_told = !taken.is_certain;
    found_.insert_or_assign(list, taken);
    return {};
  }

  static bool Fits(const std::set<int64_t>& numbers, int64_t offset,
                   const std::set<int64_t>& golden) {
    return std::ranges::all_of(numbers,
                               [&](int64_t number) { return golden.contains(number + offset); });
  }

  // Parameters below a list.
  struct Evidence {
    int64_t agreeing = 0, against = 0;
  };

  Evidence EvidenceFor(const std::string& list, int64_t offset) {
    ListOffsets tried = found_;
    tried.insert_or_assign(list, ListOffset{list, 0, 0, offset, 0, false});
    Evidence evidence;
    for (const auto& [name, own] : parameters_) {
      const std::string renamed = WithOffsets(name, tried);
      if (!renamed.starts_with(list + ".")) continue;
      const auto golden = golden_parameters_.find(renamed);
      if (golden == golden_parameters_.end()) continue;
      // Inner lists are looked for later.
      if (IsInInnerList(renamed, list)) continue;
      const auto one = Support(own, golden->second);
      evidence.agreeing += one.value_or(0);
      evidence.against += one ? 0 : 1;
    }
    return evidence;
  }

  static bool IsInInnerList(std::string_view name, std::string_view list) {
    const auto parts = SplitAt(name.substr(list.size() + 1), '.');
    return std::any_of(parts.begin() + 1, parts.end(),
                       [](std::string_view part) { return NaturalAfter("", part).has_value(); });
  }

  int64_t rank_;
  ToldAhead told_;
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

// What the ranks have of the lists of one name.
struct ListsOfName {
  int64_t agreeing = 0;
  bool is_certain = true, fits = true, is_told = false;
  std::map<int64_t, std::pair<int64_t, int64_t>> ranks{};  // number of modules, first one
};

std::string ProofText(const std::string& name, const ListsOfName& lists, std::string_view proof) {
  if (lists.is_certain) return fmt::format("{} parameters agree", lists.agreeing);
  if (lists.is_told) {
    const bool is_outer = name.find('*') == name.npos;
    return fmt::format("told by --layout, as parameters alone do not tell; {}",
                       is_outer && !proof.empty() ? proof : "not proven");
  }
  return lists.fits ? "not proven: other numbers fit as well"
                    : "not proven: no numbers fit golden's parameters";
}

}  // namespace

std::string WithStars(std::string_view list) {
  std::string text;
  for (const std::string_view part : SplitAt(list, '.')) {
    if (!text.empty()) text += '.';
    text += NaturalAfter("", part) && !text.empty() ? "*" : part;
  }
  return text;
}

std::vector<std::string> TextsOfLists(std::span<const ListOffsets> offsets,
                                      std::span<const int64_t> numbers, std::string_view proof) {
  std::map<std::string, ListsOfName> lists;
  for (size_t i = 0; i < offsets.size(); ++i) {
    for (const auto& [list, found] : offsets[i]) {
      ListsOfName& all = lists[WithStars(list)];
      all.ranks.emplace(numbers[i], std::pair(found.count, found.first));
      all.agreeing += std::max<int64_t>(found.agreeing, 0);
      all.is_certain = all.is_certain && found.is_certain;
      all.fits = all.fits && found.agreeing >= 0;
      all.is_told = all.is_told || found.is_told;
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, found] : lists) {
    std::vector<std::string> ranks;
    for (const auto& [rank, range] : found.ranks) {
      ranks.push_back(
          fmt::format("rank {} {} to {}", rank, range.second, range.second + range.first - 1));
    }
    lines.push_back(fmt::format("{} by golden's numbers: {} ({})", name, fmt::join(ranks, ", "),
                                ProofText(name, found, proof)));
  }
  return lines;
}

ListOffsets FindOffsets(const RankTree& golden, const RankTree& rank) {
  return *OffsetSearch(golden, rank, {}).Run();
}

Result<ListOffsets> FindOffsets(const RankTree& golden, const RankTree& rank,
                                const ToldAhead& told) {
  return OffsetSearch(golden, rank, told).Run();
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
