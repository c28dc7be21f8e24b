#include "pipeline/culprit/skipped_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/value_source.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// A call that changes a tensor in place.
struct Update {
  uint32_t call = 0;
  uint32_t before_row = 0, row = 0;  // of what it changes, of the result
  const Item* before = nullptr;
  const Item* after = nullptr;
  std::string series;  // what calls of its API share
  size_t times = 0;    // how often, with this one, such calls have changed the tensor by now
  bool is_parameter = false;
  bool has_gradient = false;  // as written: not for the data of a parameter
  bool is_usual = false;      // both sides have made the one before
};

// The numbers of the calls of one series.
struct Numbers {
  uint64_t least = std::numeric_limits<uint64_t>::max(), largest = 0, count = 0;

  void Add(uint64_t number) {
    least = std::min(least, number);
    largest = std::max(largest, number);
    ++count;
  }
  [[nodiscard]] bool HasGaps() const { return count > 0 && largest - least >= count; }
};

template <class Value>
using ByContents = std::unordered_map<ContentKey, Value, ContentKeyHash>;

// The forward calls of one side.
class Side {
 public:
  Side(const Comparison& comparison, bool of_target)
      : comparison_(comparison), of_target_(of_target) {
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      const std::string& name = measure::NameOn(comparison.calls[i], of_target);
      if (KindOfCall(name) != CallKind::kForward) continue;
      Add(i, WritesInPlace(name));
      if (const auto parts = ParseCallName(name); parts && parts->number) {
        numbers_[SeriesOf(name)].Add(*parts->number);
      }
    }
  }

  [[nodiscard]] bool of_target() const { return of_target_; }
  [[nodiscard]] const std::vector<Update>& updates() const { return updates_; }
  // Whether some call reads or returns it.
  [[nodiscard]] bool Has(const Item& item) const { return other_side_.contains(*KeyOf(item)); }

  // What stands on the other side where this side has `item`, as far as pairs tell: with noise it
  // is not quite the same. The last of equal contents.
  [[nodiscard]] const Item& CounterpartOf(const Item& item) const {
    const auto found = other_side_.find(*KeyOf(item));
    return found == other_side_.end() || found->second == nullptr ? item : *found->second;
  }

  // How many parameters (else: other tensors) of these contents are updated, or written into in any
  // way.
  [[nodiscard]] size_t CountUpdates(const Item& before, bool of_parameters) const {
    const ByContents<size_t>& counts = of_parameters ? written_ : written_buffers_;
    const auto found = counts.find(*KeyOf(before));
    return found == counts.end() ? 0 : found->second;
  }

  // Whether some call returns what `item` is, up to a relative error.
  [[nodiscard]] bool Computes(const Item& item, double error) const {
    const ContentKey key = *KeyOf(item);
    const auto found = made_.find(key.element_count);
    return found != made_.end() && std::ranges::any_of(found->second, [&](const Item* made) {
             return measure::StatisticError(made->statistics, item.statistics, key.element_count) <=
                    error;
           });
  }

  // Whether a pair that agrees makes the same update of another tensor of its kind, as often.
  [[nodiscard]] bool HasAgreeing(const Update& update) const {
    const auto& agreeing = agreeing_[update.has_gradient ? 1 : 0];
    const auto found = agreeing.find(update.series);
    return found != agreeing.end() && found->second >= update.times;
  }
  // Whether numbers of this series are missing between those recorded: a list of names or a scope
  // was asked for, and the calls were made.
  [[nodiscard]] bool HasGaps(const std::string& series) const {
    const auto found = numbers_.find(series);
    return found != numbers_.end() && found->second.HasGaps();
  }
  // The update of what has these contents, or null.
  [[nodiscard]] const Update* UpdateOf(const Item& before) const {
    const auto found = takers_.find(*KeyOf(before));
    return found == takers_.end() ? nullptr : &updates_[found->second];
  }

 private:
  void Add(uint32_t index, bool writes) {
    const ComparedCall& call = comparison_.calls[index];
    const Item* first = nullptr;
    Update update;
    update.call = index;
    for (uint32_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
      const Slot<Item>& item = measure::SideOf(comparison_.rows[i], of_target_);
      const auto key = item ? KeyOf(*item) : std::nullopt;
      if (!key) continue;
      const Slot<Item>& other = measure::SideOf(comparison_.rows[i], !of_target_);
      const Item*& counterpart = other_side_[*key];
      if (call.paired() && KeyOf(*other)) counterpart = &*other;
      if (!measure::IsInput(*item)) {
        made_[key->element_count].push_back(&*item);
        update.row = i;
        update.after = &*item;
        continue;
      }
      if (first == nullptr) {
        first = &*item;
        update.before_row = i;
      }
      if (item->requires_grad == true && IsTelling(*item)) trained_.insert(*key);
      // Lists of tensors are written into one by one.
      if (writes && (first == &*item ? MayBeParameter(*item, *key) : IsTelling(*item))) {
        ++written_[*key];
      } else if (writes && first == &*item) {
        ++written_buffers_[*key];
      }
    }
    const bool is_update = writes && first != nullptr && update.after != nullptr;
    if (!is_update || KeyOf(*first) == KeyOf(*update.after)) return;  // nothing changes
    update.before = first;
    update.has_gradient = first->requires_grad == true;
    update.is_parameter = update.has_gradient || trained_.contains(*KeyOf(*first));
    update.series = SeriesOf(measure::NameOn(call, of_target_));
    if (const Update* last = LastBefore(update)) {
      const ComparedCall& made = comparison_.calls[last->call];
      update.times = last->times;
      update.is_usual = made.paired() && measure::IsGood(made.verdict);
    }
    ++update.times;
    if (update.is_parameter && IsTelling(*update.after)) trained_.insert(*KeyOf(*update.after));
    if (call.paired() && measure::IsGood(call.verdict)) {
      size_t& times = agreeing_[update.has_gradient ? 1 : 0][update.series];
      times = std::max(times, update.times);
    }
    takers_[*KeyOf(*first)] = updates_.size();
    results_[*KeyOf(*update.after)] = updates_.size();
    updates_.push_back(std::move(update));
  }

  // Also of the tensor without gradient behind it: `p.data`, `p.detach()`.
  [[nodiscard]] bool MayBeParameter(const Item& item, const ContentKey& key) const {
    return item.requires_grad != false || trained_.contains(key);
  }

  // The last such call before it that changed the same tensor, or null.
  [[nodiscard]] const Update* LastBefore(const Update& update) const {
    const Update* at = &update;
    for (size_t steps = 0; steps < updates_.size(); ++steps) {
      const auto maker = results_.find(*KeyOf(*at->before));
      if (maker == results_.end()) return nullptr;
      at = &updates_[maker->second];
      if (at->series == update.series) return at;
    }
    return nullptr;
  }

  const Comparison& comparison_;
  const bool of_target_;
  std::vector<Update> updates_;
  ByContents<size_t> takers_, results_;  // indices into updates_
  // How often at most, by series; of parameters and of other tensors.
  std::unordered_map<std::string, size_t> agreeing_[2];
  ByContents<size_t> written_, written_buffers_;
  std::unordered_set<ContentKey, ContentKeyHash> trained_;      // tensors that require a gradient
  std::unordered_map<std::string, Numbers> numbers_;            // by series
  ByContents<const Item*> other_side_;                          // null: no pair has it
  std::unordered_map<int64_t, std::vector<const Item*>> made_;  // by number of elements
};

// What is said of an update that the other side does not make.
CulpritFact FactOf(const Update& update, bool of_target) {
  const auto norm = [](const Item& item) { return NumberOf(item.statistics[3]).value_or(0); };
  const std::string_view own = of_target ? "the target" : "golden";
  const std::string_view other = of_target ? "golden" : "the target";
  const Item& after = *update.after;
  return {fmt::format("{} alone updates this {} {} (norm {:.9g} before, {:.9g} after), {} "
                      "leaves it as it is",
                      own, update.is_parameter ? "parameter" : "tensor",
                      after.shape_text ? after.shape_text->view() : std::string_view(),
                      norm(*update.before), norm(after), other),
          of_target ? "extra-call" : "missing-call",
          fmt::format("{} makes this call for other {}s only", other,
                      update.is_parameter ? "parameter" : "tensor"),
          "high"};
}

// Whether the next update of the tensor is a pair that takes what this one made on its own side
// and, on the other, what this one would have changed (`there`); and that is not made up for later.
bool GoesOnWithout(const Comparison& comparison, const Side& other, const Side& own,
                   const Update& update, const Item& there) {
  const Update* next = own.UpdateOf(*update.after);
  if (next == nullptr || !comparison.calls[next->call].paired()) return false;
  const Slot<Item>& before = measure::SideOf(comparison.rows[next->before_row], other.of_target());
  const Slot<Item>& after = measure::SideOf(comparison.rows[next->row], other.of_target());
  return before && after && KeyOf(*after) && KeyOf(*before) == KeyOf(there) &&
         other.CountUpdates(*after, update.is_parameter) <=
             own.CountUpdates(*next->after, update.is_parameter);
}

bool IsSkippedBy(const Comparison& comparison, const Side& other, const Side& own,
                 const Update& update) {
  // Any tensor may be written into by one side alone; not one that both sides keep writing into.
  if (!update.is_parameter && !update.is_usual) return false;
  if (other.HasGaps(update.series)) return false;
  const Item& there = own.CounterpartOf(*update.before);
  if (!other.Has(there) || !other.HasAgreeing(update)) return false;
  const bool is_fewer = other.CountUpdates(there, update.is_parameter) <
                        own.CountUpdates(*update.before, update.is_parameter);
  if (!is_fewer && !GoesOnWithout(comparison, other, own, update, there)) return false;
  const double noise = measure::StatisticError(there.statistics, update.before->statistics,
                                               KeyOf(there)->element_count);
  const double roundoff = measure::RoundoffOf(there, *update.after);
  return !other.Computes(*update.after, measure::kNoiseFactor * std::max(roundoff, noise));
}

}  // namespace

std::optional<CulpritEvent> FindSkippedUpdate(const Comparison& comparison) {
  const auto is_alone = [](const ComparedCall& call) {
    return call.unmatched_reason == "no-golden" || call.unmatched_reason == "no-target";
  };
  if (comparison.of_saves || std::ranges::none_of(comparison.calls, is_alone)) return std::nullopt;
  const Side target(comparison, true), golden(comparison, false);
  const Update* first = nullptr;
  bool is_of_target = false;
  for (const bool of_target : {true, false}) {
    const Side& own = of_target ? target : golden;
    const Side& other = of_target ? golden : target;
    for (const Update& update : own.updates()) {
      const ComparedCall& call = comparison.calls[update.call];
      if (!is_alone(call) || (first != nullptr && first->call < update.call)) continue;
      if (IsSkippedBy(comparison, other, own, update)) {
        first = &update;
        is_of_target = of_target;
      }
    }
  }
  if (first == nullptr) return std::nullopt;
  CulpritEvent event{first->call, first->row, CulpritEvent::Kind::kFact, 0, 0};
  event.fact = FactOf(*first, is_of_target);
  return event;
}

}  // namespace plumbline::pipeline
