#include "pipeline/culprit/lost_gradients.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

struct Total {
  double mean = 0, size = 0;  // size: root mean squares added up
};

using Totals = std::unordered_map<ContentKey, Total, ContentKeyHash>;

// The forward and backward calls of one side.
class Side {
 public:
  Side(const Comparison& comparison, bool of_target)
      : comparison_(comparison), of_target_(of_target) {
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      const std::string& name = measure::NameOn(comparison.calls[i], of_target);
      if (!name.empty()) calls_.emplace(name, i);
    }
    for (const ComparedRow& row : comparison.rows) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      const bool is_forward =
          KindOfCall(measure::NameOn(comparison.calls[row.call], of_target)) == CallKind::kForward;
      const auto key = item && is_forward ? KeyOf(*item) : std::nullopt;
      if (!key) continue;
      if (measure::IsInput(row)) {
        read_.insert(*key);
      } else if (made_.insert(*key).second) {
        made_by_size_[key->element_count].push_back(&*item);
      }
    }
  }

  [[nodiscard]] bool Reads(const ContentKey& contents) const { return read_.contains(contents); }

  // Nothing where a gradient has no mean.
  [[nodiscard]] std::optional<Totals> Add() const {
    Totals totals;
    for (const ComparedCall& call : comparison_.calls) {
      const auto forward = calls_.find(ForwardNameOf(measure::NameOn(call, of_target_)));
      if (forward == calls_.end()) continue;
      std::vector<const Item*> leaves = Leaves(comparison_.calls[forward->second]);
      for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
        const Slot<Item>& gradient = measure::SideOf(row, of_target_);
        if (!gradient || measure::IsInput(row) || !gradient->is_tensor) continue;
        const auto leaf = std::ranges::find_if(leaves, [&](const Item* each) {
          return measure::ElementsOf(*each) == measure::ElementsOf(*gradient);
        });
        if (leaf == leaves.end()) continue;
        if (!AddTo(totals[*KeyOf(**leaf)], *gradient, call)) return std::nullopt;
        leaves.erase(leaf);
      }
    }
    return totals;
  }

 private:
  // Where a sum cancels, what is left carries the rounding of its terms.
  [[nodiscard]] bool AddTo(Total& total, const Item& gradient, const ComparedCall& call) const {
    const std::optional<double> mean = NumberOf(gradient.statistics[2]);
    if (!mean || !std::isfinite(*mean)) return false;
    std::vector<measure::InputError> incoming;
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      if (item && measure::IsInput(row) && item->is_tensor) incoming.push_back({&*item, 0});
    }
    const double terms =
        measure::PropagationTo(gradient, measure::NameOn(call, of_target_), incoming).cancellation;
    total.mean += *mean;
    total.size += measure::RmsOf(gradient).value_or(0) * terms;
    return true;
  }

  // What a forward call reads and no recorded one made, in its order.
  [[nodiscard]] std::vector<const Item*> Leaves(const ComparedCall& call) const {
    std::vector<const Item*> leaves;
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Slot<Item>& item = measure::SideOf(row, of_target_);
      if (!item || !measure::IsInput(row) || item->requires_grad == false) continue;
      if (!IsTelling(*item)) continue;  // zeros of one layer are those of another
      const std::optional<ContentKey> key = KeyOf(*item);
      if (key && !made_.contains(*key) && !IsLessThanNumber(*item, key->element_count)) {
        leaves.push_back(&*item);
      }
    }
    return leaves;
  }

  // `s - x` is not recorded.
  [[nodiscard]] bool IsLessThanNumber(const Item& item, int64_t element_count) const {
    const auto made = made_by_size_.find(element_count);
    return made != made_by_size_.end() && std::ranges::any_of(made->second, [&](const Item* each) {
             return IsNumberLess(item, *each);
           });
  }

  const Comparison& comparison_;
  const bool of_target_;
  std::unordered_map<std::string_view, uint32_t> calls_;
  std::unordered_set<ContentKey, ContentKeyHash> made_, read_;
  std::unordered_map<int64_t, std::vector<const Item*>> made_by_size_;
};

}  // namespace

bool CutsAPath(const Comparison& comparison) {
  std::unordered_set<std::string_view> target;
  std::unordered_map<std::string_view, std::string_view> target_of_golden;  // of paired calls
  for (const ComparedCall& call : comparison.calls) {
    if (call.paired()) target_of_golden.emplace(call.golden_name, call.target_name);
    if (!call.target_name.empty()) target.insert(call.target_name);
  }
  const auto is_backward = [](std::string_view name) {
    return KindOfCall(name) == CallKind::kBackward;
  };
  if (std::ranges::none_of(target, is_backward)) return false;  // an inference
  return std::ranges::any_of(comparison.calls, [&](const ComparedCall& call) {
    if (!call.target_name.empty()) return false;
    const auto forward = target_of_golden.find(ForwardNameOf(call.golden_name));
    return forward != target_of_golden.end() && !target.contains(BackwardNameOf(forward->second));
  });
}

bool GiveTheSameToLeaves(const Comparison& comparison, double noise) {
  const Side target(comparison, true), golden(comparison, false);
  const std::optional<Totals> ours = target.Add(), theirs = golden.Add();
  if (!ours || !theirs) return false;
  const auto agrees = [&](const Totals& some, const Side& other_side, const Totals& others) {
    return std::ranges::all_of(some, [&](const auto& leaf) {
      if (!other_side.Reads(leaf.first)) return true;
      const auto found = others.find(leaf.first);
      const Total other = found == others.end() ? Total() : found->second;
      const double size = leaf.second.size + other.size;
      return std::abs(leaf.second.mean - other.mean) <= noise * size;
    });
  };
  return agrees(*ours, golden, *theirs) && agrees(*theirs, target, *ours);
}

}  // namespace plumbline::pipeline
