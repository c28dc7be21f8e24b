#include "pipeline/culprit/wrong_results.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/namesakes.h"

namespace plumbline::pipeline {
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
    const std::string& name = comparison.calls[i].target_name;
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

}  // namespace plumbline::pipeline
