#include "pipeline/culprit/skipped_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/value_source.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// A call that changes a parameter in place.
struct Update {
  uint32_t call = 0;
  uint32_t row = 0;  // of the result
  const Item* before = nullptr;
  const Item* after = nullptr;
};

using Keys = std::unordered_set<ContentKey, ContentKeyHash>;

// The forward calls of one side.
class Side {
 public:
  Side(const Comparison& comparison, bool of_target)
      : comparison_(comparison), of_target_(of_target) {
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      const std::string& name = measure::NameOn(comparison.calls[i], of_target);
      if (KindOfCall(name) == CallKind::kForward) Add(i, WritesInPlace(name));
    }
  }

  [[nodiscard]] const std::vector<Update>& updates() const { return updates_; }
  [[nodiscard]] bool Reads(const Item& item) const { return read_.contains(*KeyOf(item)); }

  // How many parameters of these contents are updated, or written into in any way.
  [[nodiscard]] size_t CountUpdates(const Item& before) const {
    const auto found = written_.find(*KeyOf(before));
    return found == written_.end() ? 0 : found->second;
  }

  // Whether some call returns what `item` is, as closely as rounding allows.
  [[nodiscard]] bool Computes(const Item& item) const {
    const ContentKey key = *KeyOf(item);
    const auto found = made_.find(key.element_count);
    const double most = measure::kNoiseFactor * measure::RoundoffOf(item, item);
    return found != made_.end() && std::ranges::any_of(found->second, [&](const Item* made) {
             return measure::StatisticError(made->statistics, item.statistics, key.element_count) <=
                    most;
           });
  }

  // Whether a pair that agrees makes the same update of another parameter.
  [[nodiscard]] bool HasAgreeing(const std::string& series) const {
    return std::ranges::any_of(updates_, [&](const Update& each) {
      const ComparedCall& call = comparison_.calls[each.call];
      return call.paired() && measure::IsGood(call.verdict) &&
             SeriesOf(measure::NameOn(call, of_target_)) == series;
    });
  }

 private:
  void Add(uint32_t index, bool writes) {
    const ComparedCall& call = comparison_.calls[index];
    const Item* first = nullptr;
    Update update{index, 0, nullptr, nullptr};
    for (uint32_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
      const Slot<Item>& item = measure::SideOf(comparison_.rows[i], of_target_);
      const auto key = item ? KeyOf(*item) : std::nullopt;
      if (!key) continue;
      if (!measure::IsInput(*item)) {
        made_[key->element_count].push_back(&*item);
        update.row = i;
        update.after = &*item;
        continue;
      }
      read_.insert(*key);
      if (first == nullptr) first = &*item;
      // Lists of tensors are written into one by one.
      if (writes && (first == &*item ? item->requires_grad != false : IsTelling(*item))) {
        ++written_[*key];
      }
    }
    const bool is_update =
        writes && first != nullptr && first->requires_grad == true && update.after != nullptr;
    if (!is_update || results_.contains(*KeyOf(*first))) return;
    update.before = first;
    if (KeyOf(*first) == KeyOf(*update.after)) return;  // nothing changes
    results_.insert(*KeyOf(*update.after));
    updates_.push_back(update);
  }

  const Comparison& comparison_;
  const bool of_target_;
  std::vector<Update> updates_;
  Keys read_, results_;
  std::unordered_map<ContentKey, size_t, ContentKeyHash> written_;
  std::unordered_map<int64_t, std::vector<const Item*>> made_;  // by number of elements
};

// What is said of an update that the other side does not make.
CulpritFact FactOf(const Update& update, bool of_target) {
  const auto norm = [](const Item& item) { return NumberOf(item.statistics[3]).value_or(0); };
  const std::string_view own = of_target ? "the target" : "golden";
  const std::string_view other = of_target ? "golden" : "the target";
  const Item& after = *update.after;
  return {fmt::format("{} alone updates this parameter {} (norm {:.9g} before, {:.9g} after), {} "
                      "leaves it as it is",
                      own, after.shape_text ? after.shape_text->view() : std::string_view(),
                      norm(*update.before), norm(after), other),
          of_target ? "extra-call" : "missing-call",
          fmt::format("{} makes this call for other parameters only", other), "high"};
}

bool IsSkippedBy(const Side& other, const Side& own, const Update& update,
                 const std::string& series) {
  return other.Reads(*update.before) && other.HasAgreeing(series) &&
         other.CountUpdates(*update.before) < own.CountUpdates(*update.before) &&
         !other.Computes(*update.after);
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
      if (IsSkippedBy(other, own, update, SeriesOf(measure::NameOn(call, of_target)))) {
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
