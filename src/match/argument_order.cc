#include "match/argument_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "match/call_key.h"
#include "match/input_distance.h"
#include "match/item_match.h"
#include "record/call_name.h"
#include "record/value.h"

namespace plumbline::match {
namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;

constexpr size_t kNone = static_cast<size_t>(-1);

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
    const std::string_view gradient = GradientOf(forward) == kNone ? "" : "\tderived";
    return fmt::format("{}\t{}{}", StructureOf(calls_[forward]), ArgumentsOf(calls_[forward]),
                       gradient);
  }
  // -1: there is none.
  [[nodiscard]] size_t GradientOf(size_t forward) const {
    std::optional<CallName> name = ParseCallName(calls_[forward].name);
    if (!name) return kNone;
    name->kind = CallKind::kBackward;
    const auto found = by_name_.find(BuildCallName(*name));
    return found == by_name_.end() ? kNone : found->second;
  }

 private:
  const std::vector<CallItems>& calls_;
  std::unordered_map<std::string, size_t> by_name_;
};

// The forward calls of one name.
struct Group {
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
std::optional<Pairs> PairedByForm(const Side& target, const Side& golden, const Group& group) {
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

std::map<std::string, Group> GroupsOf(const Side& target, const Side& golden,
                                      const std::vector<size_t>& partner) {
  std::map<std::string, Group> groups;
  const auto is_forward = [](const CallItems& call) {
    return !call.items.empty() && KindOfCall(call.name) == CallKind::kForward;
  };
  for (size_t j = 0; j < golden.size(); ++j) {
    if (is_forward(golden[j])) groups[WithoutCallNumber(golden[j].name)].golden.push_back(j);
  }
  for (size_t i = 0; i < target.size(); ++i) {
    if (!is_forward(target[i])) continue;
    const std::string name = WithoutCallNumber(target[i].key());
    Group& group = groups[name];
    group.target.push_back(i);
    const size_t j = partner[i];
    if (j == kNone) continue;
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
    if (i != kNone || j != kNone) pairs.emplace_back(i, j);
  }
  return pairs;
}

}  // namespace plumbline::match
