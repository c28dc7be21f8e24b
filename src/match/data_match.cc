#include "match/data_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace plumbline::match {
namespace {

constexpr size_t kNone = CallPair::kNone;
constexpr std::string_view kNothing = "N/A";  // "no counterpart" in a mapping file

struct Place {
  size_t call = 0, item = 0;
};

class ValueMatcher {
 public:
  ValueMatcher(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
               const TextPairs& mapping, const ItemRules& rules)
      : target_(target), golden_(golden), rules_(rules), used_(golden.size()) {
    for (const auto& [from, to] : mapping) mapping_.emplace(from, to);
    for (size_t j = 0; j < golden.size(); ++j) {
      for (size_t k = 0; k < golden[j].items.size(); ++k) {
        by_name_.insert_or_assign(golden[j].items[k].name, Place{j, k});
      }
      used_[j].assign(golden[j].items.size(), false);
    }
  }

  // Whether the call has a mapped value; its pairs are appended then.
  bool Add(size_t i, std::vector<CallPair>& pairs) {
    const std::vector<Item>& items = target_[i].items;
    const bool mapped =
        std::ranges::any_of(items, [&](const Item& item) { return mapping_.contains(item.name); });
    if (!mapped) return false;
    std::map<size_t, ItemLinks> by_call;
    std::vector<size_t> alone;
    for (size_t k = 0; k < items.size(); ++k) {
      const auto line = mapping_.find(items[k].name);
      const bool listed = line != mapping_.end();
      if (listed) found_.insert(line->first);
      if (const Place* place = Find(listed ? line->second : std::string_view(items[k].name))) {
        by_call[place->call].emplace_back(k, place->item);
      } else {
        alone.push_back(k);
      }
    }
    PlaceInSameCall(i, by_call, alone);
    if (!by_call.empty()) std::erase_if(alone, [&](size_t k) { return SaysNothing(items[k]); });
    const size_t first = pairs.size();
    for (const auto& [j, links] : by_call) {
      for (const auto& link : links) used_[j][link.second] = true;
      CallPair& pair = pairs.emplace_back();
      pair.target = i;
      pair.golden = j;
      pair.rule = "mapped";
      pair.links = links;
    }
    // In the order of the target's values.
    std::sort(pairs.begin() + static_cast<std::ptrdiff_t>(first), pairs.end(),
              [](const CallPair& a, const CallPair& b) { return a.links < b.links; });
    if (alone.empty()) return true;
    CallPair& rest = pairs.emplace_back();
    rest.target = i;
    rest.reason = "no-golden";
    for (const size_t k : alone) rest.links.emplace_back(k, kNone);
    return true;
  }

  bool IsUsed(size_t j) const {
    return std::ranges::any_of(used_[j], [](bool used) { return used; });
  }

  // Values of a used golden call that nothing of the target is mapped to.
  void AddRest(size_t j, std::vector<CallPair>& pairs) const {
    CallPair rest;
    rest.golden = j;
    rest.reason = "no-target";
    for (size_t k = 0; k < used_[j].size(); ++k) {
      const bool is_left = !used_[j][k] && !SaysNothing(golden_[j].items[k]);
      if (is_left) rest.links.emplace_back(kNone, k);
    }
    if (!rest.links.empty()) pairs.push_back(std::move(rest));
  }

  void Warn(const TextPairs& mapping, std::vector<std::string>& warnings) const {
    for (const auto& [from, to] : mapping) {
      if (!found_.contains(from)) {
        warnings.push_back(fmt::format("data mapping: the target has no value {}", from));
      }
      if (to != kNothing && Find(to) == nullptr) {
        warnings.push_back(fmt::format("data mapping: the golden side has no value {}", to));
      }
    }
  }

 private:
  // See ItemRules::by_kind.
  bool SaysNothing(const Item& item) const { return rules_.by_kind && !item.dtype; }

  const Place* Find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }

  // Unlisted values go to the same part of the one golden call that the listed ones are in.
  void PlaceInSameCall(size_t i, std::map<size_t, ItemLinks>& by_call, std::vector<size_t>& alone) {
    if (by_call.size() != 1) return;
    const size_t j = by_call.begin()->first;
    ItemLinks& links = by_call.begin()->second;
    std::erase_if(alone, [&](size_t k) {
      const Item& item = target_[i].items[k];
      if (mapping_.contains(item.name)) return false;
      const auto part = ItemPart(item.name, target_[i].name);
      for (size_t g = 0; part && g < golden_[j].items.size(); ++g) {
        const auto other = ItemPart(golden_[j].items[g].name, golden_[j].name);
        const bool taken = std::ranges::any_of(links, [&](const auto& l) { return l.second == g; });
        if (!other || taken || !SamePart(*part, *other)) continue;
        links.emplace_back(k, g);
        return true;
      }
      return false;
    });
    std::ranges::sort(links);
  }

  const std::vector<CallItems>& target_;
  const std::vector<CallItems>& golden_;
  const ItemRules rules_;
  std::unordered_map<std::string_view, std::string_view> mapping_;
  std::unordered_map<std::string_view, Place> by_name_;
  std::unordered_set<std::string_view> found_;
  std::vector<std::vector<bool>> used_;  // by golden call and item
};

}  // namespace

std::vector<CallPair> MatchByValues(std::vector<CallItems>& target, std::vector<CallItems>& golden,
                                    const TextPairs& mapping, const MatchOptions& options,
                                    std::vector<std::string>& warnings) {
  ValueMatcher matcher(target, golden, mapping, options.items);
  std::vector<CallPair> pairs;
  std::vector<std::vector<Item>> target_items(target.size()), golden_items(golden.size());
  std::vector<bool> mapped(target.size(), false);
  for (size_t i = 0; i < target.size(); ++i) mapped[i] = matcher.Add(i, pairs);
  std::vector<CallPair> rest;
  for (size_t j = 0; j < golden.size(); ++j) {
    if (matcher.IsUsed(j)) matcher.AddRest(j, rest);
  }
  matcher.Warn(mapping, warnings);
  // Calls without items take no part in the matching of the others.
  for (size_t i = 0; i < target.size(); ++i) {
    if (mapped[i]) target_items[i].swap(target[i].items);
  }
  std::vector<bool> used(golden.size(), false);
  for (size_t j = 0; j < golden.size(); ++j) used[j] = matcher.IsUsed(j);
  for (size_t j = 0; j < golden.size(); ++j) {
    if (used[j]) golden_items[j].swap(golden[j].items);
  }
  std::vector<CallPair> others = MatchCalls(target, golden, options);
  for (size_t i = 0; i < target.size(); ++i) {
    if (mapped[i]) target_items[i].swap(target[i].items);
  }
  for (size_t j = 0; j < golden.size(); ++j) {
    if (used[j]) golden_items[j].swap(golden[j].items);
  }
  pairs.insert(pairs.end(), std::make_move_iterator(others.begin()),
               std::make_move_iterator(others.end()));
  pairs.insert(pairs.end(), std::make_move_iterator(rest.begin()),
               std::make_move_iterator(rest.end()));
  std::ranges::stable_sort(pairs, {}, &CallPair::target);  // kNone, golden only, is the largest
  return pairs;
}

}  // namespace plumbline::match
