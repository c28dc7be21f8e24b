#include "verdict/missed_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
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
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/meeting_points.h"
#include "verdict/optimizer_steps.h"
#include "verdict/value_source.h"

namespace plumbline::verdict {

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
class UpdateSide {
 public:
  UpdateSide(const Comparison& comparison, bool of_target)
      : comparison_(comparison), of_target_(of_target) {
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      const Text& name = measure::NameOn(comparison.calls[i], of_target);
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
bool GoesOnWithout(const Comparison& comparison, const UpdateSide& other, const UpdateSide& own,
                   const Update& update, const Item& there) {
  const Update* next = own.UpdateOf(*update.after);
  if (next == nullptr || !comparison.calls[next->call].paired()) return false;
  const Slot<Item>& before = measure::SideOf(comparison.rows[next->before_row], other.of_target());
  const Slot<Item>& after = measure::SideOf(comparison.rows[next->row], other.of_target());
  return before && after && KeyOf(*after) && KeyOf(*before) == KeyOf(there) &&
         other.CountUpdates(*after, update.is_parameter) <=
             own.CountUpdates(*next->after, update.is_parameter);
}

bool IsSkippedBy(const Comparison& comparison, const UpdateSide& other, const UpdateSide& own,
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

namespace {

// The parts of the name of an optimizer's whole step of one parameter; nothing for other calls.
std::optional<CallName> StepOf(const ComparedCall& call) {
  const bool is_step = call.name().view().starts_with(kOptimizerStep);
  return is_step ? ParseCallName(call.name()) : std::nullopt;
}

bool IsCut(const RunLoss& loss) { return loss.ended_early || loss.truncated || loss.unfinished; }

// The first step of a parameter that one side records and the other does not, although it records
// as many of other parameters: it had no gradient there. It records others of this one; or most
// parameters are stepped on both sides and none on the other side alone, as under another name.
std::optional<CulpritEvent> FindSkippedStep(const Comparison& comparison) {
  if (IsCut(comparison.target_loss) || IsCut(comparison.golden_loss)) return std::nullopt;
  // Parameters with steps on both sides, and on one side alone.
  std::unordered_set<std::string_view> stepped, of_target_alone, of_golden_alone;
  uint64_t steps = 0;
  for (const ComparedCall& call : comparison.calls) {
    const std::optional<CallName> step = StepOf(call);
    if (!step) continue;
    if (!call.paired()) {
      (call.golden_name.empty() ? of_target_alone : of_golden_alone).insert(step->path);
      continue;
    }
    stepped.insert(step->path);
    steps = std::max(steps, step->number.value_or(0) + 1);
  }
  const bool is_few = (of_target_alone.empty() || of_golden_alone.empty()) &&
                      of_target_alone.size() + of_golden_alone.size() < stepped.size();
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    const std::optional<CallName> step = call.paired() ? std::nullopt : StepOf(call);
    if (!step || step->number.value_or(0) >= steps) continue;
    if (!is_few && !stepped.contains(step->path)) continue;
    const std::string_view parameter = step->path;
    const bool of_target = call.golden_name.empty();
    const std::string_view own = of_target ? "the target" : "golden";
    const std::string_view other = of_target ? "golden" : "the target";
    CulpritEvent event{i, call.first_row, CulpritEvent::Kind::kFact, 0, 0};
    event.fact = {fmt::format("{} alone updates {} here", own, parameter),
                  of_target ? "extra-call" : "missing-call",
                  fmt::format("{}'s optimizer leaves it out: it has no gradient there", other),
                  "high"};
    return event;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CulpritEvent> FindSkippedUpdate(const Comparison& comparison) {
  const auto is_alone = [](const ComparedCall& call) {
    return call.unmatched_reason == "no-golden" || call.unmatched_reason == "no-target";
  };
  if (comparison.of_saves || std::ranges::none_of(comparison.calls, is_alone)) return std::nullopt;
  if (auto step = FindSkippedStep(comparison)) return step;
  const UpdateSide target(comparison, true), golden(comparison, false);
  const Update* first = nullptr;
  bool is_of_target = false;
  for (const bool of_target : {true, false}) {
    const UpdateSide& own = of_target ? target : golden;
    const UpdateSide& other = of_target ? golden : target;
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

namespace {

constexpr double kUpdateRoundings = 512;  // by which results may differ anyway

bool IsForward(const ComparedCall& call) {
  return call.paired() && KindOfCall(call.target_name) == CallKind::kForward;
}

bool HasGradients(const Comparison& comparison) {
  return std::ranges::any_of(comparison.calls, [](const ComparedCall& call) {
    const CallKind kind = KindOfCall(call.name());
    return kind == CallKind::kBackward || kind == CallKind::kParametersGrad;
  });
}

bool IsTrained(const ComparedRow& row) {
  return measure::HasTensors(row) && measure::IsInput(row) && row.golden->requires_grad == true &&
         row.target->requires_grad == true;
}

// "Module.block.1" of "Module.block.1.Block.forward.0"; empty for other calls.
std::string_view PathOfModule(std::string_view name) {
  if (!SeriesOf(std::string(name)).empty()) return {};
  const std::string_view whole = name.substr(0, name.rfind(".forward"));
  const size_t end = whole.rfind('.');
  return end == std::string_view::npos ? std::string_view() : whole.substr(0, end);
}

// The largest step of one element on each side; nothing where not all elements are recorded.
struct Furthest {
  double target = 0, golden = 0;
};
std::optional<Furthest> FurthestMoves(const Comparison& comparison, const ComparedRow& from,
                                      const ComparedRow& to) {
  Furthest furthest;
  for (const bool of_target : {false, true}) {
    const auto before = RecordedElements(comparison, *measure::SideOf(from, of_target), of_target);
    const auto after = RecordedElements(comparison, *measure::SideOf(to, of_target), of_target);
    if (!before || !after || before->size() != after->size()) return std::nullopt;
    double& largest = of_target ? furthest.target : furthest.golden;
    for (size_t i = 0; i < before->size(); ++i) {
      largest = std::max(largest, std::abs((*after)[i] - (*before)[i]));
    }
  }
  return furthest;
}

// How far the extremes of golden moved from one row to the other; or of one side from the other's.
double BetweenExtremes(const Item& a, const Item& b) {
  double largest = 0;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::optional<double> one = NumberOf(a.statistics[i]), other = NumberOf(b.statistics[i]);
    if (one && other) largest = std::max(largest, std::abs(*one - *other));
  }
  return largest;
}

// Whether the parameter may be that far off by a step. With statistics, by the largest that golden
// makes anywhere, in either direction.
bool MayBeAStep(const Comparison& comparison, const ComparedRow& before, const ComparedRow& row,
                double largest) {
  if (comparison.mode != CompareMode::kTensor) {
    return BetweenExtremes(*row.target, *row.golden) <= 2 * largest;
  }
  const auto moves = FurthestMoves(comparison, before, row);
  return moves && moves->target <= kFurthestStep * moves->golden;
}

// Follows what becomes of a value, by contents of the target.
class Effects {
 public:
  explicit Effects(const Comparison& comparison) : comparison_(comparison) {
    for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
      const ComparedRow& row = comparison.rows[i];
      if (!measure::HasTensors(row) || !IsForward(comparison.calls[row.call])) continue;
      const std::optional<ContentKey> key = KeyOf(*row.target);
      if (!key) continue;
      if (measure::IsInput(row)) {
        readers_[*key].push_back(i);
      } else {
        made_.insert(*key);
      }
    }
  }

  // Whether what the call of `read` makes of it, and what is made of that, ends in results that
  // agree.
  [[nodiscard]] bool End(const ComparedRow& read) const {
    std::vector<uint32_t> open{read.call};
    std::unordered_set<uint32_t> seen{read.call};
    for (size_t next = 0; next < open.size(); ++next) {
      if (open.size() > kMostCalls) return false;
      for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[open[next]])) {
        if (measure::IsInput(row)) continue;
        if (!measure::HasTensors(row) || !std::isfinite(row.error)) return false;
        if (Agrees(row)) continue;
        if (!AddReaders(row, open, seen)) return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kMostCalls = 256;

  // A single number, such as a loss, may agree by chance.
  static bool Agrees(const ComparedRow& row) {
    if (!(measure::ElementsOf(*row.golden) > 1)) return false;
    const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
    const double ceiling = measure::LargestNoise(roundoff) / measure::kNoiseFactor;
    return row.error <= std::min(kUpdateRoundings * roundoff, ceiling);
  }

  bool AddReaders(const ComparedRow& made, std::vector<uint32_t>& open,
                  std::unordered_set<uint32_t>& seen) const {
    const std::optional<ContentKey> key = KeyOf(*made.target);
    const auto found = key ? readers_.find(*key) : readers_.end();
    bool is_read = false;
    if (found != readers_.end()) {
      for (const uint32_t index : found->second) {
        const uint32_t call = comparison_.rows[index].call;
        if (call <= made.call) continue;
        is_read = true;
        if (seen.insert(call).second) open.push_back(call);
      }
    }
    return is_read || MeetsUnseen(made, open, seen);
  }

  // What nothing recorded reads is read as a view, or by calls that nobody recorded. What comes out
  // of those next is followed in turn: the call that reads it, or the module around that returns
  // it. Between modules, which leave more out, it must agree itself.
  bool MeetsUnseen(const ComparedRow& made, std::vector<uint32_t>& open,
                   std::unordered_set<uint32_t>& seen) const {
    const std::string_view path = PathOfModule(comparison_.calls[made.call].target_name);
    for (uint32_t i = made.call + 1; i < comparison_.calls.size(); ++i) {
      const ComparedCall& call = comparison_.calls[i];
      if (!IsForward(call) || path.empty() != PathOfModule(call.target_name).empty()) continue;
      for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
        if (!IsOfUnseenCall(row)) continue;
        if (!path.empty()) return std::isfinite(row.error) && Agrees(row);
        if (seen.insert(i).second) open.push_back(i);
        return true;
      }
      const std::string_view around = PathOfModule(call.target_name);
      const bool is_around = path.size() > around.size() && path.starts_with(around);
      if (!is_around || path[around.size()] != '.') continue;
      if (seen.insert(i).second) open.push_back(i);
      return true;
    }
    return false;
  }

  // Whether the row holds a value that was computed, or a view, and that no recorded call returned.
  [[nodiscard]] bool IsOfUnseenCall(const ComparedRow& row) const {
    if (!measure::HasTensors(row) || row.target->role != ItemRole::kInput) return false;
    const bool is_function = !SeriesOf(comparison_.calls[row.call].target_name).empty();
    if (is_function && (row.target->requires_grad != true || row.golden->shape.size() < 3)) {
      return false;  // parameters among them
    }
    const std::optional<ContentKey> key = KeyOf(*row.target);
    return key && !made_.contains(*key);
  }

  const Comparison& comparison_;
  std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash> readers_;  // rows
  std::unordered_set<ContentKey, ContentKeyHash> made_;
};

// A vector that a call reads (what is added to all elements alike has no gradient before a norm; a
// matrix has one, and only values that are computed change by more than a step), and the row in
// which it did in the step before.
struct Reading {
  uint32_t before = 0, row = 0;
};
std::vector<Reading> ReadAgain(const Comparison& comparison) {
  std::vector<Reading> readings;
  std::unordered_map<std::string, uint32_t> read;  // the last row in each place
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const ComparedCall& call = comparison.calls[row.call];
    if (!IsForward(call) || !IsTrained(row) || row.golden->shape.size() != 1) continue;
    std::string place = NameInItsStep(call.target_name) + ' ';
    place += measure::ShortName(*row.target, call.target_name);
    const auto [at, is_first] = read.try_emplace(std::move(place), i);
    const uint32_t before = std::exchange(at->second, i);
    if (!is_first) readings.push_back({before, i});
  }
  return readings;
}

}  // namespace

void ReportUnproven(Comparison& comparison) {
  constexpr size_t kMostNamed = 5;
  size_t count = 0;
  for (const ComparedRow& row : comparison.rows) {
    if (row.reason != kUnproven) continue;
    ++comparison.counts.missing_values;
    if (++count > kMostNamed) continue;
    std::string text = fmt::format(
        "{} is not judged: it differs (relative error {:.3g}) as rounding may make it differ, and "
        "nothing comes of it; what would prove that it is rounding was not recorded",
        row.item().name.view(), row.error);
    if (std::ranges::find(comparison.warnings, text) != comparison.warnings.end()) continue;
    comparison.warnings.push_back(std::move(text));
  }
}

std::vector<uint32_t> UpdatesWithoutEffect(const Comparison& comparison) {
  if (comparison.earlier.empty() || comparison.of_saves) return {};
  // Four numbers of a gradient do not tell which of its elements are rounding.
  const bool hides = comparison.mode == CompareMode::kStatistics;
  if (!hides && (comparison.mode != CompareMode::kTensor || HasGradients(comparison))) return {};
  const std::vector<Reading> readings = ReadAgain(comparison);
  double largest = 0;
  for (const Reading& each : readings) {
    largest = std::max(largest, BetweenExtremes(*comparison.rows[each.before].golden,
                                                *comparison.rows[each.row].golden));
  }
  std::vector<uint32_t> found;
  std::optional<Effects> effects;
  for (const Reading& each : readings) {
    const ComparedRow& row = comparison.rows[each.row];
    const ComparedRow& before = comparison.rows[each.before];
    if (!measure::IsBad(row.verdict) || row.reason != "input-differs") continue;
    if (before.golden->shape != row.golden->shape) continue;
    const bool was_good = measure::IsGood(before.verdict) || before.reason == "zero-both" ||
                          std::ranges::binary_search(found, each.before);
    if (!was_good || !MayBeAStep(comparison, before, row, largest)) continue;
    if (!effects) effects.emplace(comparison);
    if (effects->End(row)) found.push_back(each.row);
  }
  return found;
}

namespace {

bool HasPairedGradients(const Comparison& comparison) {
  return std::ranges::any_of(comparison.calls, [](const ComparedCall& call) {
    const CallKind kind = KindOfCall(call.name());
    return call.paired() && (kind == CallKind::kBackward || kind == CallKind::kParametersGrad);
  });
}

// Whether one side alone trains the tensor.
bool Differ(const ComparedRow& row) {
  if (!measure::HasTensors(row) || !measure::IsInput(row)) return false;
  const std::optional<bool>&target = row.target->requires_grad, &golden = row.golden->requires_grad;
  return target && golden && *target != *golden;
}

// What is the same for the argument of one module, or of one call in steps of their own.
std::string PlaceOfUpdate(const ComparedCall& call, const ComparedRow& row) {
  const Text& name = call.target_name;
  std::string place = NameInItsStep(name);
  if (SeriesOf(name).empty()) place = name.substr(0, name.view().find_last_not_of("0123456789"));
  place += ' ';
  place += measure::ShortName(*row.target, name);
  return place;
}

CulpritEvent EventOf(const ComparedCall& call, const ComparedRow& row, uint32_t index) {
  CulpritEvent event{row.call, index, CulpritEvent::Kind::kFact, 0, 0};
  const bool by_target = row.target->requires_grad == true;
  event.fact = {
      fmt::format("{} requires {} gradient (golden's does{}), although both did before",
                  measure::ShortName(*row.target, call.target_name), by_target ? "a" : "no",
                  by_target ? " not" : ""),
      "argument",
      fmt::format("requires_grad is {} (golden {}): from here on one side alone trains it",
                  by_target, !by_target),
      "high"};
  return event;
}

}  // namespace

std::optional<CulpritEvent> FindFrozenParameter(const Comparison& comparison) {
  // Calls before rows, of which there are more.
  if (comparison.of_saves || !HasPairedGradients(comparison)) return std::nullopt;
  if (std::ranges::none_of(comparison.rows, Differ)) return std::nullopt;
  std::unordered_set<std::string> trained;
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const ComparedCall& call = comparison.calls[row.call];
    if (!measure::HasTensors(row) || !measure::IsInput(row) || !call.paired()) continue;
    const bool differ = Differ(row);
    const bool both = row.target->requires_grad == true && row.golden->requires_grad == true;
    if (!differ && !both) continue;
    if (KindOfCall(call.target_name) != CallKind::kForward) continue;
    std::string place = PlaceOfUpdate(call, row);
    if (!differ) {
      trained.insert(std::move(place));
    } else if (!measure::IsBad(row.verdict) && trained.contains(place)) {
      return EventOf(call, row, i);
    }
  }
  return std::nullopt;
}

}  // namespace plumbline::verdict
