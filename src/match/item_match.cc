#include "match/item_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "match/call_align.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::match {

namespace {

// Relative difference of two items as far as their statistics show it; infinity when they do not.
double DistanceOf(const Item& a, const Item& b) {
  if (a.shape_text != b.shape_text) return INFINITY;
  if (a.has_recorded_digest && b.has_recorded_digest && a.digest == b.digest) return 0;
  std::array<double, 4> x{}, y{};
  for (size_t i = 0; i < x.size(); ++i) {
    const std::optional<double> first = NumberOf(a.statistics[i]);
    const std::optional<double> second = NumberOf(b.statistics[i]);
    if (!first || !second || !std::isfinite(*first - *second)) return INFINITY;
    x[i] = *first;
    y[i] = *second;
  }
  const double scale = std::max(std::abs(y[0]), std::abs(y[1]));
  if (x == y) return 0;
  // Not the mean: near zero it is rounding alone.
  double distance = std::max(std::abs(x[0] - y[0]), std::abs(x[1] - y[1])) / scale;
  distance = std::max(distance, std::abs(x[3] - y[3]) / y[3]);
  return std::isnan(distance) ? INFINITY : distance;
}

}  // namespace

double InputDistance(const CallItems& a, const CallItems& b) {
  if (a.items.size() != b.items.size()) return INFINITY;
  double distance = -1;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!IsInputTensor(a.items[i])) continue;
    if (!IsInputTensor(b.items[i])) return INFINITY;
    distance = std::max(distance, DistanceOf(a.items[i], b.items[i]));
  }
  return distance < 0 ? INFINITY : distance;
}

namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;

constexpr size_t kNoItem = static_cast<size_t>(-1);

// One side's calls, and the backward calls that go with forward calls.
class Side {
 public:
  explicit Side(const std::vector<CallItems>& calls) : calls_(calls) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::optional<CallName> name = ParseCallName(calls[i].name);
      if (name && name->kind == CallKind::kBackward) by_name_.emplace(calls[i].name, i);
    }
  }

  [[nodiscard]] const CallItems& operator[](size_t index) const { return calls_[index]; }
  [[nodiscard]] size_t size() const { return calls_.size(); }
  // What a forward call is told apart by: what goes in and out, its scalar arguments, and whether a
  // gradient goes through it.
  [[nodiscard]] std::string FormOf(size_t forward) const {
    const std::string_view gradient = GradientOf(forward) == kNoItem ? "" : "\tderived";
    return fmt::format("{}\t{}{}", StructureOf(calls_[forward]), ArgumentsOf(calls_[forward]),
                       gradient);
  }
  // -1: there is none.
  [[nodiscard]] size_t GradientOf(size_t forward) const {
    std::optional<CallName> name = ParseCallName(calls_[forward].name);
    if (!name) return kNoItem;
    name->kind = CallKind::kBackward;
    const auto found = by_name_.find(BuildCallName(*name));
    return found == by_name_.end() ? kNoItem : found->second;
  }

 private:
  const std::vector<CallItems>& calls_;
  std::unordered_map<std::string, size_t> by_name_;
};

// The forward calls of one name.
struct ItemGroup {
  std::vector<size_t> target, golden;
  bool any_moves = false;  // some pair differs in form
  bool is_whole = true;    // no call is paired with one of another name
};

using ByForm = std::map<std::string, std::vector<size_t>>;

ByForm Sorted(const Side& side, const std::vector<size_t>& group) {
  ByForm sorted;
  for (const size_t each : group) sorted[side.FormOf(each)].push_back(each);
  return sorted;
}

// By forms, those of one form in their order; nothing where neither side has all forms of the other
// as often, or where what goes into two of one form differs.
std::optional<Pairs> PairedByForm(const Side& target, const Side& golden, const ItemGroup& group) {
  const ByForm of_target = Sorted(target, group.target), of_golden = Sorted(golden, group.golden);
  Pairs pairs;
  for (const auto& [form, calls] : of_target) {
    const auto others = of_golden.find(form);
    if (others == of_golden.end()) continue;
    for (size_t k = 0; k < std::min(calls.size(), others->second.size()); ++k) {
      const size_t i = calls[k], j = others->second[k];
      if (!(InputDistance(target[i], golden[j]) <= kSameValue)) return std::nullopt;
      pairs.emplace_back(i, j);
    }
  }
  const bool is_all = pairs.size() == std::min(group.target.size(), group.golden.size());
  return is_all ? std::optional(pairs) : std::nullopt;
}

std::map<std::string, ItemGroup> GroupsOf(const Side& target, const Side& golden,
                                          const std::vector<size_t>& partner) {
  std::map<std::string, ItemGroup> groups;
  const auto is_forward = [](const CallItems& call) {
    return !call.items.empty() && KindOfCall(call.name) == CallKind::kForward;
  };
  for (size_t j = 0; j < golden.size(); ++j) {
    if (is_forward(golden[j])) groups[WithoutCallNumber(golden[j].name)].golden.push_back(j);
  }
  for (size_t i = 0; i < target.size(); ++i) {
    if (!is_forward(target[i])) continue;
    const std::string name = WithoutCallNumber(target[i].key());
    ItemGroup& group = groups[name];
    group.target.push_back(i);
    const size_t j = partner[i];
    if (j == kNoItem) continue;
    const std::string other = WithoutCallNumber(golden[j].name);
    if (other != name) group.is_whole = groups[other].is_whole = false;
    group.any_moves = group.any_moves || target.FormOf(i) != golden.FormOf(j);
  }
  return groups;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> PairedByArguments(const std::vector<CallItems>& target,
                                                         const std::vector<CallItems>& golden,
                                                         const std::vector<size_t>& partner) {
  const Side of_target(target), of_golden(golden);
  Pairs pairs;
  for (const auto& [name, group] : GroupsOf(of_target, of_golden, partner)) {
    if (!group.any_moves || !group.is_whole) continue;
    const std::optional<Pairs> found = PairedByForm(of_target, of_golden, group);
    if (found) pairs.insert(pairs.end(), found->begin(), found->end());
  }
  if (pairs.empty()) return pairs;
  std::ranges::sort(pairs);
  for (size_t k = 0, count = pairs.size(); k < count; ++k) {
    const size_t i = of_target.GradientOf(pairs[k].first),
                 j = of_golden.GradientOf(pairs[k].second);
    if (i != kNoItem || j != kNoItem) pairs.emplace_back(i, j);
  }
  return pairs;
}

namespace {

constexpr std::string_view kKeyword = "kwargs.";
constexpr std::string_view kInput = "input.";

std::string_view TextOr(const OptionalText& text) {
  return text ? std::string_view(*text) : std::string_view("None");
}

std::string_view KindText(DTypeKind kind) {
  switch (kind) {
    case DTypeKind::kBool:
      return "truth values";
    case DTypeKind::kUnsigned:
    case DTypeKind::kSigned:
      return "integers";
    case DTypeKind::kFloat:
      return "floats";
    case DTypeKind::kComplex:
      return "complex";
  }
  return "";
}

// Types that may stand against each other have one class.
std::string_view DTypeClass(std::string_view text, const ItemRules& rules) {
  // Python numbers: 2 and 2.0 are one argument, 2 and 1.5 another value of it.
  if (text == "<class 'int'>" || text == "<class 'float'>" || text == "<class 'bool'>") {
    return "number";
  }
  const std::optional<DType> parsed = ParseDType(text);
  if (!parsed) return text;
  if (rules.by_kind) return KindText(InfoOf(*parsed).kind);
  const bool loose =
      parsed == DType::kFloat16 || parsed == DType::kBFloat16 || parsed == DType::kFloat32;
  return loose ? std::string_view("loose float") : InfoOf(*parsed).name;
}

std::optional<Mismatch> ValueMismatch(const Item& a, const Item& b, const ItemRules& rules) {
  const bool of_tensors = a.is_tensor && b.is_tensor;
  if (a.shape_text != b.shape_text && !(rules.any_shape && of_tensors)) {
    return Mismatch{
        "shape-differs",
        fmt::format("{}: target {}, golden {}", a.name, TextOr(a.shape_text), TextOr(b.shape_text)),
        a.role};
  }
  if (DTypesAgree(a.dtype, b.dtype, rules)) return std::nullopt;
  return Mismatch{"dtype-differs",
                  fmt::format("{}: target {}, golden {}", a.name, TextOr(a.dtype), TextOr(b.dtype)),
                  a.role};
}

// Items that are not named after their calls have no parts to compare.
bool SameName(const CallItems& target, const Item& a, const CallItems& golden, const Item& b) {
  const std::optional<std::string_view> part = ItemPart(a.name, target.name);
  const std::optional<std::string_view> other = ItemPart(b.name, golden.name);
  return !part || !other || SamePart(*part, *other);
}

std::string NormalPart(const CallItems& call, const Item& item) {
  std::string part(ItemPart(item.name, call.name).value_or(item.name));
  if (part.starts_with(kKeyword)) part.replace(0, kKeyword.size(), kInput);
  return part;
}

// Links by name, then inputs by order; nothing if an item stays alone.
std::optional<ItemLinks> LinkByName(const CallItems& target, const CallItems& golden) {
  if (target.items.size() != golden.items.size()) return std::nullopt;
  std::unordered_map<std::string, size_t> by_part;
  for (size_t i = 0; i < golden.items.size(); ++i) {
    by_part.try_emplace(NormalPart(golden, golden.items[i]), i);
  }
  std::vector<size_t> partner(target.items.size(), kNoItem);
  std::vector<bool> used(golden.items.size(), false);
  for (size_t i = 0; i < target.items.size(); ++i) {
    const auto found = by_part.find(NormalPart(target, target.items[i]));
    if (found == by_part.end() || used[found->second]) continue;
    if (golden.items[found->second].role != target.items[i].role) continue;
    partner[i] = found->second;
    used[found->second] = true;
  }
  for (size_t i = 0; i < partner.size(); ++i) {
    for (size_t j = 0; j < used.size() && partner[i] == kNoItem; ++j) {
      const bool inputs =
          golden.items[j].role == ItemRole::kInput && target.items[i].role == ItemRole::kInput;
      if (used[j] || !inputs) continue;
      partner[i] = j;
      used[j] = true;
    }
    if (partner[i] == kNoItem) return std::nullopt;
  }
  ItemLinks links;
  for (size_t i = 0; i < partner.size(); ++i) links.emplace_back(i, partner[i]);
  return links;
}

bool IsPlainArgument(const Item& item) { return item.role == ItemRole::kInput && !item.is_tensor; }

// Which of `longer` the item of the other side is: by name, then of inputs the first that is left
// of tensors, or that has the same value of others. kNoItem: none.
size_t PartnerIn(const CallItems& longer, const std::vector<bool>& used, const Item& item) {
  for (size_t j = 0; j < used.size(); ++j) {
    const Item& other = longer.items[j];
    if (used[j] || other.role != ItemRole::kInput || item.role != ItemRole::kInput) continue;
    if (other.is_tensor != item.is_tensor) continue;
    if (item.is_tensor || (item.digest == other.digest && item.dtype == other.dtype)) return j;
  }
  return kNoItem;
}

// Links of all items of the shorter call, where what the longer one has beside them are arguments
// without tensors; nothing otherwise.
std::optional<ItemMatch> LinkBesideDefaults(const CallItems& target, const CallItems& golden) {
  const bool of_target = target.items.size() > golden.items.size();
  const CallItems& longer = of_target ? target : golden;
  const CallItems& shorter = of_target ? golden : target;
  const bool returns = std::ranges::any_of(
      shorter.items, [](const Item& item) { return item.role == ItemRole::kOutput && item.dtype; });
  const bool are_as_many = target.items.size() == golden.items.size();
  if (target.kind != CallKind::kForward || !returns || are_as_many) return std::nullopt;
  std::unordered_map<std::string, size_t> by_part;
  for (size_t j = 0; j < longer.items.size(); ++j) {
    by_part.try_emplace(NormalPart(longer, longer.items[j]), j);
  }
  std::vector<size_t> partner(shorter.items.size(), kNoItem);
  std::vector<bool> used(longer.items.size(), false);
  for (size_t i = 0; i < partner.size(); ++i) {
    const auto found = by_part.find(NormalPart(shorter, shorter.items[i]));
    if (found == by_part.end() || used[found->second]) continue;
    const Item& other = longer.items[found->second];
    if (other.role != shorter.items[i].role || other.is_tensor != shorter.items[i].is_tensor)
      continue;
    partner[i] = found->second;
    used[found->second] = true;
  }
  ItemMatch match;
  for (size_t i = 0; i < partner.size(); ++i) {
    if (partner[i] == kNoItem) partner[i] = PartnerIn(longer, used, shorter.items[i]);
    if (partner[i] == kNoItem) return std::nullopt;
    used[partner[i]] = true;
    match.links.emplace_back(of_target ? partner[i] : i, of_target ? i : partner[i]);
  }
  std::ranges::sort(match.links);
  for (size_t j = 0; j < used.size(); ++j) {
    if (used[j]) continue;
    if (!IsPlainArgument(longer.items[j])) return std::nullopt;
    (of_target ? match.alone_target : match.alone_golden).push_back(j);
  }
  match.are_defaults = true;
  return match;
}

// The first item of `longer` that the other side's call has not, or null.
const Item* FirstAlone(const CallItems& longer, const CallItems& shorter) {
  std::unordered_set<std::string> parts;
  for (const Item& item : shorter.items) parts.insert(NormalPart(shorter, item));
  const auto found = std::ranges::find_if(longer.items, [&](const Item& item) {
    return item.dtype && !parts.contains(NormalPart(longer, item));
  });
  return found == longer.items.end() ? nullptr : &*found;
}

// What two calls of unequal lengths differ by; where names tell nothing, the places.
Mismatch OtherStructure(const CallItems& target, const CallItems& golden, size_t at) {
  const bool target_longer = target.items.size() > golden.items.size();
  const Item* alone = target.items.size() == golden.items.size() ? nullptr
                      : target_longer                            ? FirstAlone(target, golden)
                                                                 : FirstAlone(golden, target);
  if (alone != nullptr) {
    return {"structure-differs",
            fmt::format("only {} has {}", target_longer ? "target" : "golden", alone->name),
            alone->role};
  }
  const Item& a = target.items[at];
  return {"structure-differs",
          fmt::format("target has {} where golden has {}", a.name, golden.items[at].name), a.role};
}

std::optional<Mismatch> MismatchInOrder(const CallItems& target, const CallItems& golden,
                                        const ItemRules& rules) {
  const size_t count = std::min(target.items.size(), golden.items.size());
  for (size_t i = 0; i < count; ++i) {
    const Item& a = target.items[i];
    const Item& b = golden.items[i];
    if (a.role != b.role || !SameName(target, a, golden, b)) {
      return OtherStructure(target, golden, i);
    }
    if (std::optional<Mismatch> mismatch = ValueMismatch(a, b, rules)) return mismatch;
  }
  if (target.items.size() == golden.items.size()) return std::nullopt;
  const bool target_longer = target.items.size() > golden.items.size();
  const std::vector<Item>& longer = (target_longer ? target : golden).items;
  const bool only_nulls = std::all_of(longer.begin() + static_cast<std::ptrdiff_t>(count),
                                      longer.end(), [](const Item& item) { return !item.dtype; });
  // Releases differ in whether they write a null for a missing gradient.
  if (only_nulls) return Mismatch{"structure-differs", "", std::nullopt};
  const Item& extra = longer[count];
  return Mismatch{"structure-differs",
                  fmt::format("only {} has {}", target_longer ? "target" : "golden", extra.name),
                  extra.role};
}

bool IsOnlyNulls(const Mismatch& mismatch) {
  return mismatch.detail.empty() && mismatch.reason == "structure-differs";
}

// One framework writes a null gradient for every argument, another for tensors alone: those at the
// end say nothing and are left out.
ItemMatch WithoutLastNulls(const CallItems& target, const CallItems& golden) {
  const size_t count = std::min(target.items.size(), golden.items.size());
  ItemMatch match;
  for (size_t i = 0; i < count; ++i) match.links.emplace_back(i, i);
  return match;
}

// Where `outer` has a null at `at` for a container that `inner` has looked into from `*next` on,
// passes over what is inside ("input.1.0" of "input.1"); what is no null stays alone.
bool PassContainer(const CallItems& outer, size_t at, const CallItems& inner, size_t* next,
                   std::vector<size_t>* alone) {
  const auto part = ItemPart(outer.items[at].name, outer.name);
  if (!part || part->empty() || outer.items[at].dtype) return false;
  const size_t first = *next;
  for (; *next < inner.items.size(); ++*next) {
    const Item& item = inner.items[*next];
    const auto inside = ItemPart(item.name, inner.name);
    const bool is_inside = inside && item.role == outer.items[at].role &&
                           inside->starts_with(*part) &&
                           inside->substr(part->size()).starts_with('.');
    if (!is_inside) break;
    if (item.dtype) alone->push_back(*next);
  }
  return *next > first;
}

// In order, for gradients: one framework knows those of results in a container inside the results,
// another has one null for the container. Nothing where that does not explain the difference.
std::optional<ItemMatch> LinkAroundContainers(const CallItems& target, const CallItems& golden) {
  if (target.kind != CallKind::kBackward) return std::nullopt;
  ItemMatch match;
  size_t i = 0, j = 0;
  while (i < target.items.size() && j < golden.items.size()) {
    const Item& a = target.items[i];
    const Item& b = golden.items[j];
    if (PassContainer(golden, j, target, &i, &match.alone_target)) {
      ++j;
    } else if (PassContainer(target, i, golden, &j, &match.alone_golden)) {
      ++i;
    } else if (a.role == b.role && SameName(target, a, golden, b)) {
      match.links.emplace_back(i++, j++);
    } else {
      return std::nullopt;
    }
  }
  const auto is_null = [](const Item& item) { return !item.dtype; };
  const bool is_all = std::ranges::all_of(std::span(target.items).subspan(i), is_null) &&
                      std::ranges::all_of(std::span(golden.items).subspan(j), is_null);
  const bool has_alone = !match.alone_target.empty() || !match.alone_golden.empty();
  return is_all && has_alone ? std::optional(std::move(match)) : std::nullopt;
}

ItemMatch MatchMapped(const CallItems& target, const CallItems& golden, const ItemRules& rules) {
  std::unordered_map<std::string, size_t> by_part;
  for (size_t j = 0; j < golden.items.size(); ++j) {
    by_part.try_emplace(NormalPart(golden, golden.items[j]), j);
  }
  ItemMatch match;
  std::vector<bool> used(golden.items.size(), false);
  for (size_t i = 0; i < target.items.size(); ++i) {
    std::string part = target.mapped_parts[i];
    if (part.starts_with(kKeyword)) part.replace(0, kKeyword.size(), kInput);
    const auto found = by_part.find(part);
    if (found == by_part.end() || used[found->second]) {
      if (!rules.by_kind || target.items[i].dtype) match.alone_target.push_back(i);
      continue;
    }
    used[found->second] = true;
    match.links.emplace_back(i, found->second);
    match.mismatch = ValueMismatch(target.items[i], golden.items[found->second], rules);
    if (match.mismatch) return match;
  }
  for (size_t j = 0; j < used.size(); ++j) {
    if (used[j] || (rules.by_kind && !golden.items[j].dtype)) continue;
    match.alone_golden.push_back(j);
  }
  if (match.links.empty()) {
    match.mismatch = Mismatch{"structure-differs", "the mapping pairs none of the items", {}};
  }
  return match;
}

}  // namespace

ItemMatch MatchItems(const CallItems& target, const CallItems& golden, const ItemRules& rules) {
  if (!target.mapped_parts.empty()) return MatchMapped(target, golden, rules);
  ItemMatch match;
  match.mismatch = MismatchInOrder(target, golden, rules);
  if (!match.mismatch || match.mismatch->reason != "structure-differs") return match;
  if (rules.by_kind && IsOnlyNulls(*match.mismatch)) return WithoutLastNulls(target, golden);
  std::optional<ItemMatch> linked =
      rules.by_kind ? LinkAroundContainers(target, golden) : std::nullopt;
  if (!linked) {
    if (std::optional<ItemLinks> links = LinkByName(target, golden)) {
      linked.emplace().links = *std::move(links);
    } else {
      linked = LinkBesideDefaults(target, golden);
    }
    if (!linked) return match;
  }
  for (const auto& [i, j] : linked->links) {
    if (ValueMismatch(target.items[i], golden.items[j], rules)) return match;
  }
  return *std::move(linked);
}

std::string StructureOf(const CallItems& call, const ItemRules& rules) {
  std::string text;
  size_t count = call.items.size();
  while (rules.by_kind && count > 0 && !call.items[count - 1].dtype) --count;
  for (const Item& item : std::span(call.items).first(count)) {
    text += static_cast<char>('0' + static_cast<int>(item.role));
    if (!rules.any_shape || !item.is_tensor) text += TextOr(item.shape_text);
    text += item.dtype ? DTypeClass(*item.dtype, rules) : std::string_view("null");
    text += '\n';
  }
  return text;
}

std::string ArgumentsOf(const CallItems& call) {
  std::string text;
  for (const Item& item : call.items) {
    const bool is_argument = item.role == ItemRole::kInput && !item.is_tensor && item.dtype;
    if (!is_argument || item.digest.empty()) continue;
    text += std::string_view(item.digest);
    text += '\n';
  }
  return text;
}

bool DTypesAgree(const OptionalText& target, const OptionalText& golden, const ItemRules& rules) {
  if (target == golden) return true;
  return target && golden && DTypeClass(*target, rules) == DTypeClass(*golden, rules);
}

}  // namespace plumbline::match
