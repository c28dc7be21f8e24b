#include "match/call_align.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/text/text_parts.h"
#include "match/item_match.h"
#include "match/name_match.h"
#include "record/call_name.h"
#include "record/recorded_number.h"

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
  if (segments.size() > 2 && !IsModuleCall(call_name)) segments[1] = WithoutRankMark(segments[1]);
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
  const std::string_view name = WithoutUnderscores(WithoutRankMark(segments[1]));
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

namespace {

constexpr size_t kNear = 16;  // calls
constexpr std::string_view kForward = "forward";
constexpr std::string_view kBackward = "backward";

bool IsForward(std::string_view name) { return name.rfind(kForward) != name.npos; }

// "Torch.f.0.forward" of "Torch.f.0.backward", "Module.m.M.forward.0" of "Module.m.M.backward.0";
// empty for other names.
std::string ForwardOf(std::string_view name) {
  const size_t at = name.rfind(kBackward);
  if (at == name.npos) return {};
  std::string forward(name);
  return forward.replace(at, kBackward.size(), kForward);
}

size_t Find(const std::unordered_map<std::string, size_t>& by_name, std::string_view backward) {
  const auto found = by_name.find(ForwardOf(backward));
  return found == by_name.end() ? kUnpaired : found->second;
}

uint32_t Id(size_t golden) { return golden == kUnpaired ? 0 : static_cast<uint32_t>(golden + 1); }

}  // namespace

Surroundings::Surroundings(const std::vector<CallItems>& target,
                           const std::vector<CallItems>& golden, const std::vector<size_t>& partner,
                           const std::vector<size_t>& counterpart)
    : target_(target), golden_(golden), partner_(partner), counterpart_(counterpart) {
  for (size_t i = 0; i < target.size(); ++i) {
    if (IsForward(target[i].name)) forward_target_.emplace(target[i].name, i);
  }
  for (size_t j = 0; j < golden.size(); ++j) {
    if (IsForward(golden[j].name)) forward_golden_.emplace(golden[j].name, j);
  }
}

uint32_t Surroundings::Anchor(size_t index, bool is_target, int step) const {
  const std::vector<size_t>& pairs = is_target ? partner_ : counterpart_;
  for (size_t k = 0; k < kNear; ++k) {
    if (step < 0 && index == 0) return 0;
    index = step < 0 ? index - 1 : index + 1;
    if (index >= pairs.size()) return 0;
    if (pairs[index] != kUnpaired) return Id(is_target ? pairs[index] : index);
  }
  return 0;
}

void Surroundings::Describe(std::vector<AlignedCall>& target,
                            std::vector<AlignedCall>& golden) const {
  for (AlignedCall& call : target) {
    call.pair_before = Anchor(call.index, true, -1);
    call.pair_after = Anchor(call.index, true, 1);
    const size_t forward = Find(forward_target_, target_[call.index].name);
    call.pair_forward = forward == kUnpaired ? 0 : Id(partner_[forward]);
  }
  for (AlignedCall& call : golden) {
    call.pair_before = Anchor(call.index, false, -1);
    call.pair_after = Anchor(call.index, false, 1);
    call.pair_forward = Id(Find(forward_golden_, golden_[call.index].name));
  }
}

namespace {

// Of one name; above, nobody's order is looked into: the search is quadratic.
constexpr size_t kMostDisagreeing = 1024;

bool IsCollective(std::string_view name) {
  constexpr std::string_view kPrefix = "Distributed.";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  return name.find("send") == name.npos && name.find("recv") == name.npos;
}

bool IsOutput(const Item& item) { return item.is_tensor && item.role == ItemRole::kOutput; }

// Equal texts: equal contents. Empty for what many values share: constants, unknown statistics.
std::string ContentOf(const Item& item) {
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (!max || !min || *max == *min) return {};
  std::string text;
  for (const Recorded& each : item.statistics.array()) {
    const double number = NumberOf(each).value_or(0);
    text += std::to_string(std::bit_cast<uint64_t>(number)) + ' ';
  }
  return text;
}

class OrderSearch {
 public:
  OrderSearch(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
              const std::vector<size_t>& partner)
      : target_(target), golden_(golden), partner_(partner), fresh_(target.size(), kUnpaired) {}

  std::vector<std::pair<size_t, size_t>> Run() {
    for (const auto& [name, calls] : Disagreeing()) Exchange(calls);
    if (taken_.empty()) return {};
    for (size_t t = 0; t < target_.size(); ++t) Follow(t);
    return Closed();
  }

 private:
  using Groups = std::map<std::string, std::vector<size_t>>;

  Groups Disagreeing() const {
    Groups groups;
    for (size_t t = 0; t < target_.size(); ++t) {
      if (partner_[t] == kUnpaired || !IsCollective(target_[t].name)) continue;
      if (InputDistance(target_[t], golden_[partner_[t]]) <= kSameValue) continue;
      groups[WithoutCallNumber(target_[t].name)].push_back(t);
    }
    return groups;
  }

  // Gives each call the nearest of the group's partners that agrees.
  void Exchange(const std::vector<size_t>& calls) {
    if (calls.size() < 2 || calls.size() > kMostDisagreeing) return;
    for (const size_t t : calls) {
      size_t best = kUnpaired;
      double least = kSameValue;
      for (const size_t other : calls) {
        const size_t g = partner_[other];
        if (taken_.contains(g)) continue;
        const double distance = InputDistance(target_[t], golden_[g]);
        if (distance > least || (distance == least && best != kUnpaired)) continue;
        least = distance;
        best = g;
      }
      if (best != kUnpaired) Take(t, best);
    }
  }

  void Take(size_t t, size_t g) {
    fresh_[t] = g;
    taken_.insert(g);
  }

  // A call that takes a result of an exchanged one belongs to the golden call that takes the same.
  void Follow(size_t t) {
    if (fresh_[t] == kUnpaired && partner_[t] != kUnpaired && TakesMoved(t) &&
        !Fits(t, partner_[t])) {
      const std::vector<size_t>& candidates = GoldenCalls(WithoutCallNumber(target_[t].name));
      const auto found = std::find_if(candidates.begin(), candidates.end(),
                                      [&](size_t g) { return !taken_.contains(g) && Fits(t, g); });
      if (found != candidates.end()) Take(t, *found);
    }
    if (fresh_[t] != kUnpaired) AddMoved(target_[t], golden_[fresh_[t]]);
  }

  [[nodiscard]] bool TakesMoved(size_t t) const {
    return std::ranges::any_of(target_[t].items, [&](const Item& item) {
      return IsInputTensor(item) && moved_.contains(ContentOf(item));
    });
  }

  [[nodiscard]] bool Fits(size_t t, size_t g) const {
    const std::vector<Item>& own = target_[t].items;
    const std::vector<Item>& other = golden_[g].items;
    if (own.size() != other.size()) return false;
    for (size_t i = 0; i < own.size(); ++i) {
      const auto moved = IsInputTensor(own[i]) ? moved_.find(ContentOf(own[i])) : moved_.end();
      if (moved == moved_.end()) continue;
      if (!IsInputTensor(other[i]) || ContentOf(other[i]) != moved->second) return false;
    }
    return true;
  }

  void AddMoved(const CallItems& own, const CallItems& other) {
    for (size_t i = 0; i < std::min(own.items.size(), other.items.size()); ++i) {
      if (!IsOutput(own.items[i]) || !IsOutput(other.items[i])) continue;
      std::string content = ContentOf(own.items[i]);
      if (!content.empty()) moved_.insert_or_assign(std::move(content), ContentOf(other.items[i]));
    }
  }

  const std::vector<size_t>& GoldenCalls(const std::string& name) {
    if (by_name_.empty()) {
      for (const size_t g : partner_) {
        if (g != kUnpaired) by_name_[WithoutCallNumber(golden_[g].name)].push_back(g);
      }
    }
    return by_name_[name];
  }

  // Whoever lost its partner gets one that was left, of the same structure; a name where that does
  // not come out even stays as it was.
  std::vector<std::pair<size_t, size_t>> Closed() {
    std::map<std::string, std::pair<std::vector<size_t>, std::vector<size_t>>> left;
    for (size_t t = 0; t < target_.size(); ++t) {
      if (partner_[t] == kUnpaired) continue;
      auto& [losers, free] = left[WithoutCallNumber(target_[t].name)];
      const bool is_taken = taken_.contains(partner_[t]);
      if (fresh_[t] == kUnpaired && is_taken) losers.push_back(t);
      if (fresh_[t] != kUnpaired && !is_taken) free.push_back(partner_[t]);
    }
    std::unordered_set<std::string> uneven;
    for (auto& [name, group] : left) {
      if (!Assign(group.first, group.second)) uneven.insert(name);
    }
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t t = 0; t < target_.size(); ++t) {
      const bool is_new = fresh_[t] != kUnpaired && fresh_[t] != partner_[t];
      if (is_new && !uneven.contains(WithoutCallNumber(target_[t].name))) {
        pairs.emplace_back(t, fresh_[t]);
      }
    }
    return pairs;
  }

  bool Assign(const std::vector<size_t>& losers, std::vector<size_t>& free) {
    for (const size_t t : losers) {
      const std::string structure = StructureOf(target_[t]);
      const auto found = std::find_if(
          free.begin(), free.end(), [&](size_t g) { return StructureOf(golden_[g]) == structure; });
      if (found == free.end()) return false;
      fresh_[t] = *found;
      free.erase(found);
    }
    return free.empty();
  }

  const std::vector<CallItems>& target_;
  const std::vector<CallItems>& golden_;
  const std::vector<size_t>& partner_;
  std::vector<size_t> fresh_;                           // new partner per target call, or kUnpaired
  std::unordered_set<size_t> taken_;                    // golden calls in fresh_
  std::unordered_map<std::string, std::string> moved_;  // contents of the target to golden's
  std::unordered_map<std::string, std::vector<size_t>> by_name_;
};

}  // namespace

std::vector<std::pair<size_t, size_t>> PairsInAnotherOrder(const std::vector<CallItems>& target,
                                                           const std::vector<CallItems>& golden,
                                                           const std::vector<size_t>& partner) {
  return OrderSearch(target, golden, partner).Run();
}

namespace {

constexpr size_t kMaxCells = size_t{1} << 24;
// One pair more outweighs whatever the pairs agree in, for sequences up to kPair / 64 calls.
constexpr uint64_t kPair = uint64_t{1} << 32;
constexpr uint64_t kSite = 8;
constexpr uint64_t kNeighbour = 3;
// A wrong argument is one call's; a call with the arguments of another one is that one, unless what
// stands around it says otherwise.
constexpr uint64_t kArguments = 4;
constexpr uint64_t kName = 1;
// What stands next to it, and whose gradient it is, tells more than what these are called.
constexpr uint64_t kPairedNeighbour = 6;
constexpr uint64_t kPairedForward = 32;

uint64_t Score(const AlignedCall& a, const AlignedCall& b) {
  if (a.structure != b.structure) return 0;
  uint64_t score = kPair;
  if (a.site != 0 && a.site == b.site) score += kSite;
  if (a.before == b.before) score += kNeighbour;
  if (a.after == b.after) score += kNeighbour;
  if (a.arguments != 0 && a.arguments == b.arguments) score += kArguments;
  if (a.name == b.name) score += kName;
  if (a.pair_before != 0 && a.pair_before == b.pair_before) score += kPairedNeighbour;
  if (a.pair_after != 0 && a.pair_after == b.pair_after) score += kPairedNeighbour;
  if (a.pair_forward != 0 && a.pair_forward == b.pair_forward) score += kPairedForward;
  return score;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> AlignCalls(const std::vector<AlignedCall>& a,
                                                  const std::vector<AlignedCall>& b) {
  std::vector<std::pair<size_t, size_t>> pairs;
  const size_t columns = b.size() + 1;
  if ((a.size() + 1) > kMaxCells / columns) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].structure == b[i].structure) pairs.emplace_back(a[i].index, b[i].index);
    }
    return pairs;
  }
  std::vector<uint64_t> best((a.size() + 1) * columns, 0);
  const auto at = [&](size_t i, size_t j) -> uint64_t& { return best[i * columns + j]; };
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const uint64_t score = Score(a[i], b[j]);
      at(i, j) = std::max({at(i + 1, j), at(i, j + 1), score > 0 ? score + at(i + 1, j + 1) : 0});
    }
  }
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const uint64_t score = Score(a[i], b[j]);
    if (score > 0 && at(i, j) == score + at(i + 1, j + 1)) {
      pairs.emplace_back(a[i++].index, b[j++].index);
    } else if (at(i, j) == at(i + 1, j)) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

}  // namespace plumbline::match
