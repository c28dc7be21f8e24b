#include "pipeline/culprit/other_way.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/lost_gradients.h"
#include "pipeline/culprit/namesakes.h"
#include "pipeline/culprit/own_results.h"
#include "pipeline/culprit/row_verdict.h"
#include "pipeline/culprit/wrong_results.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// What is read after a wrong result, and what agrees there.
class Rest {
 public:
  Rest(const Comparison& comparison, const UnpairedCalls& unpaired, uint32_t first_row,
       CallKind direction)
      : comparison_(comparison), first_row_(first_row), direction_(direction) {
    for (uint32_t i = first_row; i < comparison.rows.size(); ++i) {
      const ComparedRow& row = comparison.rows[i];
      if (!row.target || !IsRead(row)) continue;
      // What a call of the target alone makes of it must show again where both sides agree: else
      // what agrees later need not depend on it.
      if (!comparison.calls[row.call].paired() && !unpaired.IsGood(row.call)) continue;
      if (const auto key = KeyOf(*row.target)) read_.insert(*key);
    }
  }

  // The last call with a wrong result; nothing where one is read by no call, or is a parameter's.
  [[nodiscard]] std::optional<uint32_t> LastWrong() {
    uint32_t last = comparison_.rows[first_row_].call;
    for (uint32_t i = first_row_; i < comparison_.rows.size(); ++i) {
      const ComparedRow& row = comparison_.rows[i];
      if (!row.target || !row.golden || !measure::IsBad(row.verdict)) continue;
      if (row.target->role == ItemRole::kParameterGrad) return std::nullopt;
      if (KindOf(row) != direction_ || row.target->role != ItemRole::kOutput) continue;
      if (!IsTaken(i)) return std::nullopt;
      last = row.call;
      last_row_ = i;
    }
    return last;
  }

  // Whether a call behind `last` computes something that agrees, from other values than such as are
  // merely off.
  [[nodiscard]] bool AgreesBehind(uint32_t last) const {
    return std::any_of(
        comparison_.rows.begin() + first_row_, comparison_.rows.end(), [&](const ComparedRow& row) {
          return row.call > last && KindOf(row) == direction_ && Agrees(row) && !IsDamped(row);
        });
  }

 private:
  static bool IsRead(const ComparedRow& row) { return measure::IsInput(*row.target); }
  [[nodiscard]] CallKind KindOf(const ComparedRow& row) const {
    return KindOfCall(comparison_.calls[row.call].name());
  }

  // A value that is merely off is damped where it is added to something larger, as a gradient is to
  // a parameter: what agrees there shows nothing.
  [[nodiscard]] bool IsDamped(const ComparedRow& result) const {
    if (IsRead(result)) return false;
    const auto rows = measure::RowsOf(comparison_, comparison_.calls[result.call]);
    return std::ranges::any_of(rows, [](const ComparedRow& row) {
      return measure::IsInput(row) && measure::HasTensors(row) && measure::IsBad(row.verdict) &&
             row.error < kAnother;
    });
  }

  [[nodiscard]] bool Agrees(const ComparedRow& row) const {
    if (!row.target || !row.golden || !measure::IsGood(row.verdict)) return false;
    const Item& wrong = comparison_.rows[last_row_].item();
    // One number may agree by chance or by construction, as the sum of a softmax does.
    const Result<int64_t> ours = ElementCount(row.target->shape);
    const Result<int64_t> theirs = ElementCount(wrong.shape);
    if (!ours || !theirs || *ours < *theirs) return false;
    if (IsRead(row)) return row.target->is_tensor && measure::HasSameExtremes(*row.target, wrong);
    if (row.target->role != ItemRole::kOutput) return false;
    const auto known = measure::ClassOfCall(comparison_.calls[row.call].target_name);
    return IsTelling(*row.target) && known != measure::CallClass::kCopy;
  }

  // Casts are not recorded; a wider type keeps the extremes. Gradients are summed unseen before the
  // next call reads them: a sum of that shape that agrees stands for its parts.
  [[nodiscard]] bool IsTaken(uint32_t index) const {
    const ComparedRow& wrong = comparison_.rows[index];
    const auto key = KeyOf(*wrong.target);
    if (key && read_.contains(*key)) return true;
    return std::any_of(comparison_.rows.begin() + index, comparison_.rows.end(),
                       [&](const ComparedRow& row) {
                         return row.call > wrong.call && row.target && row.golden && IsRead(row) &&
                                !measure::IsBad(row.verdict) && row.target->is_tensor &&
                                row.target->shape == wrong.target->shape &&
                                (direction_ == CallKind::kBackward ||
                                 measure::HasSameExtremes(*row.target, *wrong.target));
                       });
  }

  const Comparison& comparison_;
  const uint32_t first_row_;
  const CallKind direction_;
  uint32_t last_row_ = first_row_;
  std::unordered_set<ContentKey, ContentKeyHash> read_;
};

}  // namespace

CallKind DirectionOf(const Comparison& comparison, const CulpritEvent& event) {
  const bool arrives_later = event.kind == CulpritEvent::Kind::kUnpaired;
  const uint32_t call = arrives_later ? comparison.rows[event.row].call : event.call;
  return KindOfCall(comparison.calls[call].name());
}

namespace {

bool MeetsAgain(const Comparison& comparison, const std::vector<CulpritEvent>& events,
                const UnpairedCalls& unpaired, CallKind direction) {
  std::optional<uint32_t> first;
  for (const CulpritEvent& event : events) {
    if (DirectionOf(comparison, event) != direction) continue;
    if (!event.has_other_source || event.must_agree) return false;
    first = std::min(first.value_or(event.row), event.row);
  }
  if (!first) return false;
  Rest rest(comparison, unpaired, *first, direction);
  const std::optional<uint32_t> last = rest.LastWrong();
  return last && rest.AgreesBehind(*last);
}

// In half of the digits, as far as statistics tell.
bool AlmostSame(const Item& target, const Item& golden) {
  const auto count = static_cast<int64_t>(measure::ElementsOf(golden));
  return measure::ElementsOf(target) == measure::ElementsOf(golden) && IsTelling(target) &&
         measure::StatisticError(target.statistics, golden.statistics, count) <=
             std::sqrt(measure::RoundoffOf(golden, golden));
}

bool HasCallWithoutCounterpart(const Comparison& comparison) {
  return std::ranges::any_of(comparison.calls,
                             [](const ComparedCall& call) { return !call.paired(); });
}

// Whether the event is that of a product whose operands golden reads in the other order: numbers of
// the same statistics may be those of the transposed product. Views of tensors (`x.mT`) are no
// recorded calls.
bool IsTurnedProduct(const Comparison& comparison, const CulpritEvent& event) {
  const ComparedCall& call = comparison.calls[event.call];
  if (!call.paired() || event.kind != CulpritEvent::Kind::kInput) return false;
  if (measure::ClassOfCall(call.target_name) != measure::CallClass::kProduct) return false;
  const ComparedRow* operands[2] = {};
  size_t count = 0;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (!row.target || !row.golden || !row.target->is_tensor || !row.golden->is_tensor) continue;
    if (!measure::IsInput(row)) {
      if (!AlmostSame(*row.target, *row.golden)) return false;
    } else if (count++ < 2) {
      operands[count - 1] = &row;
    }
  }
  return count == 2 && AlmostSame(*operands[0]->target, *operands[1]->golden) &&
         AlmostSame(*operands[1]->target, *operands[0]->golden);
}

bool AreTurnedProducts(const Comparison& comparison, const std::vector<CulpritEvent>& events,
                       CallKind direction) {
  bool any = false;
  for (const CulpritEvent& event : events) {
    if (DirectionOf(comparison, event) != direction) continue;
    if (!IsTurnedProduct(comparison, event)) return false;
    any = true;
  }
  return any;
}

// Calls of both sides may also read other values of their own in another order: operands of a
// formula that is written otherwise. Then all that is wrong must come to values that both sides
// have, forward and, because a gradient of another value is no event, backward.
bool IsRewritten(const Comparison& comparison, const std::vector<CulpritEvent>& events,
                 CallKind direction, double noise) {
  const auto is_here = [&](const CulpritEvent& event) {
    return DirectionOf(comparison, event) == direction;
  };
  if (std::ranges::none_of(events, is_here)) return false;
  const bool may_be = std::ranges::all_of(events, [&](const CulpritEvent& event) {
    if (event.must_agree) return false;
    return !is_here(event) || event.has_other_source || event.kind == CulpritEvent::Kind::kInput;
  });
  const bool may_differ =
      HasCallWithoutCounterpart(comparison) || AreTurnedProducts(comparison, events, direction);
  if (!may_be || !may_differ) return false;
  const WrongResults backward(comparison, CallKind::kBackward, noise);
  if (!backward.AllMeet() || !GiveTheSameToLeaves(comparison, noise)) return false;
  const bool is_forward = direction == CallKind::kForward;
  const WrongResults forward(comparison, CallKind::kForward, noise);
  if (is_forward && !forward.AllMeet()) return false;
  return std::ranges::all_of(events, [&](const CulpritEvent& event) {
    if (!is_here(event) || event.kind == CulpritEvent::Kind::kOutput) return true;
    const ComparedRow& row = comparison.rows[event.row];
    const bool is_known = !is_forward || event.has_other_source || forward.AreKnownBefore(row);
    return is_known && (is_forward ? forward : backward).IsFollowed(row);
  });
}

bool HasCallOfGoldenAlone(const Comparison& comparison) {
  return std::ranges::any_of(comparison.calls,
                             [](const ComparedCall& call) { return call.target_name.empty(); });
}

// Whether some paired call reads another value altogether and returns what agrees, or a call of the
// target alone did right. A value that is merely off is damped where it is added to something
// larger or averaged: where the target only does more than golden, that shows nothing of it.
bool ShowsAnother(const Comparison& comparison, const UnpairedCalls& unpaired, CallKind direction) {
  if (HasCallOfGoldenAlone(comparison)) return true;
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.target_name.empty() || KindOfCall(call.target_name) != direction) continue;
    if (!call.paired()) {
      if (unpaired.IsGood(i)) return true;
      continue;
    }
    const auto rows = measure::RowsOf(comparison, call);
    const bool returns_wrong = std::ranges::any_of(rows, [](const ComparedRow& row) {
      return !measure::IsInput(row) && measure::IsBad(row.verdict);
    });
    const bool reads_another = std::ranges::any_of(rows, [](const ComparedRow& row) {
      return measure::IsInput(row) && measure::IsBad(row.verdict) && !(row.error < kAnother);
    });
    if (reads_another && !returns_wrong) return true;
  }
  return false;
}

}  // namespace

std::set<CallKind> DirectionsThatMeet(const Comparison& comparison,
                                      const std::vector<CulpritEvent>& events,
                                      const UnpairedCalls& unpaired, double noise) {
  std::set<CallKind> met;
  for (const CallKind direction : {CallKind::kForward, CallKind::kBackward}) {
    const bool meets = MeetsAgain(comparison, events, unpaired, direction) ||
                       IsRewritten(comparison, events, direction, noise);
    if (meets && (ShowsAnother(comparison, unpaired, direction) ||
                  AreTurnedProducts(comparison, events, direction))) {
      met.insert(direction);
    }
  }
  if (!met.empty() && CutsAPath(comparison)) met.clear();
  return met;
}

namespace {

// Whether a forward pair behind `call` computes several numbers, which agree.
bool ComputesWhatAgreesBehind(const Comparison& comparison, uint32_t call) {
  return std::ranges::any_of(comparison.rows, [&](const ComparedRow& row) {
    if (row.call <= call || !row.target || !row.golden || measure::IsInput(row)) return false;
    const std::string& name = comparison.calls[row.call].target_name;
    return KindOfCall(name) == CallKind::kForward && measure::IsGood(row.verdict) &&
           measure::ElementsOf(*row.target) > 1 && IsTelling(*row.target) &&
           measure::ClassOfCall(name) != measure::CallClass::kCopy;
  });
}

}  // namespace

bool FormsMeet(const Comparison& comparison, const std::vector<CulpritEvent>& forms, double noise) {
  uint32_t last = 0;
  for (const CulpritEvent& form : forms) {
    const bool is_forward = DirectionOf(comparison, form) == CallKind::kForward;
    last = is_forward ? std::max(last, form.call) : last;
  }
  const bool is_wrong = std::ranges::any_of(
      comparison.rows, [](const ComparedRow& row) { return measure::IsBad(row.verdict); });
  return !forms.empty() && !is_wrong && ComputesWhatAgreesBehind(comparison, last) &&
         AllOwnResultsAreRead(comparison, noise) && !CutsAPath(comparison) &&
         GiveTheSameToLeaves(comparison, noise);
}

}  // namespace plumbline::pipeline
