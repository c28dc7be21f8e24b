#include "verdict/wrong_results.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/value.h"
#include "verdict/call_rows.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/meeting_points.h"
#include "verdict/missed_gradients.h"
#include "verdict/unpaired_calls.h"

namespace plumbline::verdict {

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
    const Text& name = comparison.calls[row.call].target_name;
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
         AllLoneResultsAreRead(comparison, noise) && !CutsAPath(comparison) &&
         GiveTheSameToLeaves(comparison, noise);
}

namespace {

bool IsWrong(const ComparedRow& row) {
  return row.target && row.golden && measure::IsBad(row.verdict);
}

// Whether the difference in what a call reads is below the rounding of what it returns, which has
// as many elements: added to something larger, say.
bool VanishesIn(const ComparedRow& read, const ComparedRow& result) {
  if (!read.golden || !result.golden || !read.golden->is_tensor) return false;
  if (measure::ElementsOf(*result.golden) < measure::ElementsOf(*read.golden)) return false;
  const std::optional<double> small = measure::RmsOf(*read.golden);
  const std::optional<double> large = measure::RmsOf(*result.golden);
  const double roundoff = measure::RoundoffOf(*result.target, *result.golden);
  return small && large && read.error * *small <= measure::kNoiseFactor * roundoff * *large;
}

// Whether a product of values that stand elsewhere on the other side comes to numbers with the same
// statistics: a transposed product.
bool ComesToTheSame(const ComparedRow& read, const ComparedRow& result, std::string_view call) {
  return !(read.error < kAnother) && measure::ElementsOf(*result.target) > 1 &&
         IsTelling(*result.target) && measure::ClassOfCall(call) == measure::CallClass::kProduct;
}

}  // namespace

WrongResults::WrongResults(const Comparison& comparison, CallKind direction, double noise)
    : comparison_(comparison), direction_(direction), noise_(noise) {
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const Text& name = comparison.calls[i].target_name;
    if (!name.empty()) target_calls_.emplace(name, i);
  }
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const CallKind kind = KindOf(row);
    const bool is_input = measure::IsInput(row);
    const auto target = row.target ? KeyOf(*row.target) : std::nullopt;
    const auto golden = row.golden ? KeyOf(*row.golden) : std::nullopt;
    if (target && is_input && kind == direction) read_[*target].push_back(i);
    if (target && !is_input && kind == CallKind::kForward) made_[*target].push_back(i);
    if (golden && is_input && kind == direction) golden_read_.insert(*golden);
  }
}

CallKind WrongResults::KindOf(const ComparedRow& row) const {
  return KindOfCall(comparison_.calls[row.call].name());
}

std::span<const ComparedRow> WrongResults::RowsOf(uint32_t call) const {
  return measure::RowsOf(comparison_, comparison_.calls[call]);
}

bool WrongResults::LeadsOn(const ComparedRow& read) const {
  return std::ranges::any_of(RowsOf(read.call), [&](const ComparedRow& row) {
    if (!row.target || measure::IsInput(row) || !row.target->is_tensor) return false;
    if (!comparison_.calls[read.call].paired() || measure::IsBad(row.verdict)) return true;
    if (!measure::IsGood(row.verdict)) return false;
    const bool hides = comparison_.mode == CompareMode::kStatistics &&
                       ComesToTheSame(read, row, comparison_.calls[read.call].target_name);
    return hides || VanishesIn(read, row);
  });
}

bool WrongResults::IsRead(const ComparedRow& wrong) const {
  const std::optional<ContentKey> key = KeyOf(*wrong.target);
  const auto found = key && IsTelling(*wrong.target) ? read_.find(*key) : read_.end();
  if (found == read_.end()) return false;
  return std::ranges::any_of(found->second, [&](uint32_t index) {
    const ComparedRow& row = comparison_.rows[index];
    if (row.call <= wrong.call) return false;
    return measure::IsGood(row.verdict) || LeadsOn(row);
  });
}

// Casts are not recorded; a wider type keeps the extremes.
bool WrongResults::IsCast(const ComparedRow& wrong) const {
  const Item& item = *wrong.target;
  return std::ranges::any_of(comparison_.rows, [&](const ComparedRow& row) {
    return row.call > wrong.call && row.target && measure::IsInput(row) &&
           measure::IsGood(row.verdict) && row.target->is_tensor &&
           row.target->shape == item.shape && row.target->dtype != item.dtype &&
           measure::HasSameExtremes(*row.target, item);
  });
}

// The last result of a loop that nobody asks for may stand in another call of the other side.
bool WrongResults::IsUnreadOnBothSides(const ComparedRow& wrong) const {
  const Item& item = *wrong.target;
  const Result<int64_t> count = ElementCount(item.shape);
  if (!count || *count < 2 || !IsTelling(item)) return false;
  return std::ranges::any_of(comparison_.rows, [&](const ComparedRow& row) {
    if (!row.golden || measure::IsInput(row) || KindOf(row) != direction_) return false;
    if (!row.golden->is_tensor || row.golden->shape != item.shape) return false;
    const std::optional<ContentKey> key = KeyOf(*row.golden);
    if (!key || golden_read_.contains(*key)) return false;
    return measure::StatisticError(item.statistics, row.golden->statistics, *count) <= noise_;
  });
}

bool WrongResults::IsCopy(const ComparedRow& result) const {
  const std::optional<ContentKey> key = KeyOf(*result.target);
  return std::ranges::any_of(RowsOf(result.call), [&](const ComparedRow& row) {
    return row.target && measure::IsInput(row) && row.target->shape == result.target->shape &&
           KeyOf(*row.target) == key;
  });
}

std::optional<uint32_t> WrongResults::MakerOf(const Item& value, uint32_t reader) const {
  const std::optional<ContentKey> key = KeyOf(value);
  if (!key || !IsTelling(value)) return std::nullopt;
  std::optional<uint32_t> maker, of_view;
  if (const auto found = made_.find(*key); found != made_.end()) {
    for (const uint32_t index : found->second) {
      const ComparedRow& row = comparison_.rows[index];
      if (row.call >= reader || IsCopy(row)) continue;
      if (row.target->shape == value.shape) maker = row.call;
      of_view = row.call;
    }
    return maker ? maker : of_view;
  }
  for (const ComparedRow& row : comparison_.rows) {
    if (row.call >= reader) break;
    if (!row.target || measure::IsInput(row) || !row.target->is_tensor) continue;
    if (row.target->shape == value.shape && IsNumberLess(value, *row.target)) maker = row.call;
  }
  return maker;
}

std::optional<uint32_t> WrongResults::GradientReaderOf(const Item& value, uint32_t reader) const {
  const std::optional<uint32_t> maker = MakerOf(value, reader);
  if (!maker) return std::nullopt;
  const auto call = target_calls_.find(BackwardNameOf(comparison_.calls[*maker].target_name));
  return call == target_calls_.end() ? std::nullopt : std::optional(call->second);
}

bool WrongResults::GoesToItsMaker(const ComparedRow& wrong,
                                  std::unordered_set<uint32_t>& readers) const {
  const auto forward = target_calls_.find(ForwardNameOf(comparison_.calls[wrong.call].target_name));
  if (forward == target_calls_.end()) return false;
  const auto is_operand = [](const ComparedRow& row) {
    return row.target && measure::IsInput(row) && row.target->is_tensor;
  };
  const auto fits = [&](const ComparedRow& row) {
    return is_operand(row) &&
           measure::ElementsOf(*row.target) == measure::ElementsOf(*wrong.target);
  };
  // What is recorded may be the gradient of a step within the call: x[:, 0, 1] takes two.
  const bool is_of_step = std::ranges::none_of(RowsOf(forward->second), fits);
  bool any = false;
  for (const ComparedRow& row : RowsOf(forward->second)) {
    if (!(is_of_step ? is_operand(row) : fits(row))) continue;
    if (row.target->requires_grad == false) continue;
    // Which of two operands of one size it belongs to is not told: both must meet.
    const std::optional<uint32_t> call = GradientReaderOf(*row.target, forward->second);
    if (!call || *call <= wrong.call) return false;
    const bool meets = std::ranges::any_of(RowsOf(*call), [&](const ComparedRow& each) {
      return each.target && measure::IsInput(each) && each.target->is_tensor &&
             (measure::IsGood(each.verdict) || LeadsOn(each));
    });
    if (!meets) return false;
    if (!comparison_.calls[*call].paired()) readers.insert(*call);
    any = true;
  }
  return any;
}

bool WrongResults::Meets(const ComparedRow& wrong, std::unordered_set<uint32_t>& readers) const {
  if (!wrong.target->is_tensor || wrong.target->role == ItemRole::kParameterGrad) return false;
  if (IsRead(wrong)) return true;
  if (direction_ == CallKind::kBackward) return GoesToItsMaker(wrong, readers);
  return IsCast(wrong) || IsUnreadOnBothSides(wrong);
}

bool WrongResults::AllMeet() const {
  std::unordered_set<ContentKey, ContentKeyHash> wrong;
  std::unordered_set<uint32_t> readers;  // of sums of wrong gradients
  for (uint32_t i = 0; i < comparison_.calls.size(); ++i) {
    const ComparedCall& call = comparison_.calls[i];
    if (call.target_name.empty() || KindOfCall(call.target_name) != direction_) continue;
    const std::span<const ComparedRow> rows = RowsOf(i);
    const bool reads_wrong =
        readers.contains(i) || std::ranges::any_of(rows, [&](const ComparedRow& row) {
          const auto key = row.target && measure::IsInput(row) ? KeyOf(*row.target) : std::nullopt;
          return key && wrong.contains(*key);
        });
    for (const ComparedRow& row : rows) {
      if (!row.target || measure::IsInput(row)) continue;
      const bool follows = !call.paired() && reads_wrong && row.target->is_tensor &&
                           !measure::ReadsShapeOnly(call.target_name);
      if (!follows && !IsWrong(row)) continue;
      if (!Meets(row, readers)) return false;
      if (const auto key = KeyOf(*row.target)) wrong.insert(*key);
    }
  }
  return true;
}

bool WrongResults::IsKnownOn(bool of_target, const ComparedRow& row) const {
  const Item& item = *measure::SideOf(row, of_target);
  const std::optional<ContentKey> key = KeyOf(item);
  if (!key || !IsTelling(item)) return false;
  return std::ranges::any_of(comparison_.rows, [&](const ComparedRow& each) {
    const Slot<Item>& other = measure::SideOf(each, of_target);
    if (!other || !other->is_tensor || each.call == row.call) return false;
    // Golden's calls may stand elsewhere in its own order.
    const bool is_before = each.call < row.call || (!of_target && !measure::IsInput(each));
    return is_before && (KeyOf(*other) == key || IsNumberLess(item, *other));
  });
}

bool WrongResults::AreKnownBefore(const ComparedRow& row) const {
  if (!measure::HasTensors(row)) return false;
  const bool begins_sum = measure::IsAllZero(*row.golden) &&
                          measure::IsAddition(comparison_.calls[row.call].golden_name);
  return IsKnownOn(true, row) && (begins_sum || IsKnownOn(false, row));
}

}  // namespace plumbline::verdict
