#include "pipeline/culprit/incomplete_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/unpaired_calls.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

using Items = std::vector<const Item*>;

bool IsNull(const Item& item) { return !item.dtype; }

bool AreAlike(const Item& target, const Item& golden, double noise) {
  if (target.role != golden.role || target.is_tensor != golden.is_tensor) return false;
  if (IsNull(target) || IsNull(golden)) return IsNull(target) && IsNull(golden);
  if (!target.is_tensor) return target.digest == golden.digest;
  if (target.shape_text != golden.shape_text || target.dtype != golden.dtype) return false;
  if (!NumberOf(target.statistics[0]) || !NumberOf(golden.statistics[0])) return false;
  const auto count = static_cast<int64_t>(measure::ElementsOf(golden));
  return measure::StatisticError(target.statistics, golden.statistics, count) <= noise;
}

// What one side lacks of a call, where all else agrees.
struct Lack {
  bool of_target = false;
  bool are_nulls = false;  // the place is there, with nothing in it
  Items items;             // as the other side has them
  size_t results = 0;      // that both sides have and that are no nulls
};

// Of lists of one length: nulls of one side alone.
std::optional<Lack> NullsOf(const Items& target, const Items& golden, double noise) {
  Lack lack;
  lack.are_nulls = true;
  for (size_t i = 0; i < target.size(); ++i) {
    const Item& a = *target[i];
    const Item& b = *golden[i];
    if (AreAlike(a, b, noise)) {
      lack.results += !measure::IsInput(a) && !IsNull(a) ? 1 : 0;
      continue;
    }
    if (a.role != b.role || IsNull(a) == IsNull(b)) return std::nullopt;
    if (!lack.items.empty() && lack.of_target != IsNull(a)) return std::nullopt;
    lack.of_target = IsNull(a);
    lack.items.push_back(lack.of_target ? &b : &a);
  }
  return lack.items.empty() ? std::nullopt : std::optional(lack);
}

// Of a list that is shorter: what stands between its values in the longer one.
std::optional<Lack> GapsOf(const Items& shorter, const Items& longer, bool of_target,
                           double noise) {
  Lack lack;
  lack.of_target = of_target;
  size_t next = 0;
  for (const Item* item : longer) {
    const bool is_there = next < shorter.size() && AreAlike(*shorter[next], *item, noise);
    if (!is_there) {
      lack.items.push_back(item);
      continue;
    }
    lack.results += !measure::IsInput(*item) && !IsNull(*item) ? 1 : 0;
    ++next;
  }
  return next == shorter.size() ? std::optional(lack) : std::nullopt;
}

Items ItemsOf(const Comparison& comparison, const ComparedCall& call, bool of_target) {
  Items items;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (item) items.push_back(&*item);
  }
  return items;
}

bool ForwardAgrees(const Comparison& comparison, const ComparedCall& backward) {
  const ComparedCall* forward = ForwardCallOf(comparison, backward.target_name);
  return forward != nullptr && forward->paired() && measure::IsGood(forward->verdict);
}

bool HasLosses(const RunLoss& loss) { return loss.truncated || loss.recorder_drops > 0; }

}  // namespace

bool LacksValuesOnly(const Comparison& comparison, uint32_t index, double noise) {
  const ComparedCall& call = comparison.calls[index];
  const ComparedCall* other = GoldenNamesakeOf(comparison, call);
  if (other == nullptr || comparison.of_saves) return false;
  const Items target = ItemsOf(comparison, call, true);
  const Items golden = ItemsOf(comparison, *other, false);
  const bool is_shorter = target.size() < golden.size();
  const std::optional<Lack> lack = target.size() == golden.size() ? NullsOf(target, golden, noise)
                                   : is_shorter ? GapsOf(target, golden, true, noise)
                                                : GapsOf(golden, target, false, noise);
  if (!lack) return false;
  if (HasLosses(lack->of_target ? comparison.target_loss : comparison.golden_loss)) return true;
  const bool are_inputs =
      std::ranges::all_of(lack->items, [](const Item* item) { return measure::IsInput(*item); });
  if (are_inputs && lack->results > 0) return true;
  const bool are_results =
      std::ranges::none_of(lack->items, [](const Item* item) { return measure::IsInput(*item); });
  if (!are_results) return false;
  if (KindOfCall(call.target_name) == CallKind::kBackward) {
    return !lack->are_nulls && ForwardAgrees(comparison, call);
  }
  const auto name = ParseCallName(call.target_name);
  if (!name || target.size() + golden.size() <= 2) return false;
  // A module may return less than it did; one that returns nothing would be of no use.
  return name->form == CallName::Form::kApi || lack->results == 0;
}

void WarnOfOtherForms(Comparison& comparison) {
  constexpr size_t kMostNamed = 5;
  size_t count = 0;
  for (const ComparedCall& call : comparison.calls) {
    const bool is_form = !call.target_name.empty() && !call.unmatched_detail.empty() &&
                         call.unmatched_reason.ends_with("-differs");
    const bool is_named =
        comparison.first_wrong_call && comparison.first_wrong_call->name == call.target_name;
    if (!is_form || is_named || ++count > kMostNamed) continue;
    comparison.warnings.push_back(
        fmt::format("{} is not compared: {}", call.target_name, call.unmatched_detail));
  }
  if (count > kMostNamed) {
    comparison.warnings.push_back(
        fmt::format("{} more calls are not compared, being of another form", count - kMostNamed));
  }
}

}  // namespace plumbline::pipeline
