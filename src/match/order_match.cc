#include "match/order_match.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "match/call_key.h"
#include "match/input_distance.h"
#include "match/item_match.h"
#include "record/recorded_number.h"

namespace plumbline::match {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
// Of one name; above, nobody's order is looked into: the search is quadratic.
constexpr size_t kMostDisagreeing = 1024;

bool IsCollective(std::string_view name) {
  constexpr std::string_view kPrefix = "Distributed.";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  return name.find("send") == name.npos && name.find("recv") == name.npos;
}

bool IsInput(const Item& item) { return item.is_tensor && item.role == ItemRole::kInput; }
bool IsOutput(const Item& item) { return item.is_tensor && item.role == ItemRole::kOutput; }

// Equal texts: equal contents. Empty for what many values share: constants, unknown statistics.
std::string ContentOf(const Item& item) {
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (!max || !min || *max == *min) return {};
  std::string text;
  for (const Recorded& each : item.statistics) {
    const double number = NumberOf(each).value_or(0);
    text += std::to_string(std::bit_cast<uint64_t>(number)) + ' ';
  }
  return text;
}

class OrderSearch {
 public:
  OrderSearch(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
              const std::vector<size_t>& partner)
      : target_(target), golden_(golden), partner_(partner), fresh_(target.size(), kNone) {}

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
      if (partner_[t] == kNone || !IsCollective(target_[t].name)) continue;
      if (InputDistance(target_[t], golden_[partner_[t]]) <= kSameValue) continue;
      groups[WithoutCallNumber(target_[t].name)].push_back(t);
    }
    return groups;
  }

  // Gives each call the nearest of the group's partners that agrees.
  void Exchange(const std::vector<size_t>& calls) {
    if (calls.size() < 2 || calls.size() > kMostDisagreeing) return;
    for (const size_t t : calls) {
      size_t best = kNone;
      double least = kSameValue;
      for (const size_t other : calls) {
        const size_t g = partner_[other];
        if (taken_.contains(g)) continue;
        const double distance = InputDistance(target_[t], golden_[g]);
        if (distance > least || (distance == least && best != kNone)) continue;
        least = distance;
        best = g;
      }
      if (best != kNone) Take(t, best);
    }
  }

  void Take(size_t t, size_t g) {
    fresh_[t] = g;
    taken_.insert(g);
  }

  // A call that takes a result of an exchanged one belongs to the golden call that takes the same.
  void Follow(size_t t) {
    if (fresh_[t] == kNone && partner_[t] != kNone && TakesMoved(t) && !Fits(t, partner_[t])) {
      const std::vector<size_t>& candidates = GoldenCalls(WithoutCallNumber(target_[t].name));
      const auto found = std::find_if(candidates.begin(), candidates.end(),
                                      [&](size_t g) { return !taken_.contains(g) && Fits(t, g); });
      if (found != candidates.end()) Take(t, *found);
    }
    if (fresh_[t] != kNone) AddMoved(target_[t], golden_[fresh_[t]]);
  }

  [[nodiscard]] bool TakesMoved(size_t t) const {
    return std::ranges::any_of(target_[t].items, [&](const Item& item) {
      return IsInput(item) && moved_.contains(ContentOf(item));
    });
  }

  [[nodiscard]] bool Fits(size_t t, size_t g) const {
    const std::vector<Item>& own = target_[t].items;
    const std::vector<Item>& other = golden_[g].items;
    if (own.size() != other.size()) return false;
    for (size_t i = 0; i < own.size(); ++i) {
      const auto moved = IsInput(own[i]) ? moved_.find(ContentOf(own[i])) : moved_.end();
      if (moved == moved_.end()) continue;
      if (!IsInput(other[i]) || ContentOf(other[i]) != moved->second) return false;
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
        if (g != kNone) by_name_[WithoutCallNumber(golden_[g].name)].push_back(g);
      }
    }
    return by_name_[name];
  }

  // Whoever lost its partner gets one that was left, of the same structure; a name where that does
  // not come out even stays as it was.
  std::vector<std::pair<size_t, size_t>> Closed() {
    std::map<std::string, std::pair<std::vector<size_t>, std::vector<size_t>>> left;
    for (size_t t = 0; t < target_.size(); ++t) {
      if (partner_[t] == kNone) continue;
      auto& [losers, free] = left[WithoutCallNumber(target_[t].name)];
      const bool is_taken = taken_.contains(partner_[t]);
      if (fresh_[t] == kNone && is_taken) losers.push_back(t);
      if (fresh_[t] != kNone && !is_taken) free.push_back(partner_[t]);
    }
    std::unordered_set<std::string> uneven;
    for (auto& [name, group] : left) {
      if (!Assign(group.first, group.second)) uneven.insert(name);
    }
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t t = 0; t < target_.size(); ++t) {
      const bool is_new = fresh_[t] != kNone && fresh_[t] != partner_[t];
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
  std::vector<size_t> fresh_;                           // new partner per target call, or kNone
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

}  // namespace plumbline::match
