#include "verdict/meeting_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/text/text_hash.h"
#include "match/name_match.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/missed_gradients.h"
#include "verdict/other_batch.h"
#include "verdict/unpaired_calls.h"
#include "verdict/value_source.h"

namespace plumbline::verdict {

EquivalentCalls EquivalentCallsOf(const Comparison& comparison) {
  EquivalentCalls ways;
  for (const ComparedCall& call : comparison.calls) {
    if (call.unmatched_reason != kEquivalent) continue;
    ways.target += call.target_name.empty() ? 0 : 1;
    ways.golden += call.golden_name.empty() ? 0 : 1;
    if (ways.text.empty()) ways.text = call.unmatched_detail;
  }
  return ways;
}

std::string NarrowedText(const Comparison& comparison) {
  for (const ComparedRow& row : comparison.rows) {
    for (const Note& note : row.notes) {
      if (note.code == kNarrowed) return note.text;
    }
  }
  return {};
}

namespace {

// The floating-point results of one side's own forward calls that no later call reads.
std::vector<const ComparedRow*> UnreadResults(const Comparison& comparison, bool of_target) {
  std::unordered_map<ContentKey, uint32_t, ContentKeyHash> last_reader;
  for (const ComparedRow& row : comparison.rows) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    const bool is_read = item && measure::IsInput(*item);
    if (const auto key = is_read ? KeyOf(*item) : std::nullopt) last_reader[*key] = row.call;
  }
  std::vector<const ComparedRow*> unread;
  for (const ComparedRow& row : comparison.rows) {
    const ComparedCall& call = comparison.calls[row.call];
    const Text& name = measure::NameOn(call, of_target);
    if (call.paired() || name.empty() || KindOfCall(name) != CallKind::kForward) continue;
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || measure::IsInput(*item) || !item->is_tensor) continue;
    if (measure::RoundoffOf(*item, *item) == 0) continue;
    const auto key = KeyOf(*item);
    const auto found = key ? last_reader.find(*key) : last_reader.end();
    if (found == last_reader.end() || found->second <= row.call) unread.push_back(&row);
  }
  return unread;
}

// The target's calls through which its gradients went.
class Derived {
 public:
  explicit Derived(const Comparison& comparison) : comparison_(comparison) {
    for (const ComparedCall& call : comparison.calls) {
      if (std::string forward = ForwardNameOf(call.target_name); !forward.empty()) {
        names_.insert(std::move(forward));
      }
    }
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      if (names_.contains(comparison.calls[i].target_name)) last_ = i;
    }
  }

  // Whether no loss depends on a result.
  [[nodiscard]] bool LeavesOut(const ComparedRow& result) const {
    return result.target->requires_grad == true && result.call < last_ &&
           !names_.contains(comparison_.calls[result.call].target_name);
  }

 private:
  const Comparison& comparison_;
  TextSet names_;
  uint32_t last_ = 0;
};

// Whether none of `others` has the shape of `result`, or one of these agrees with it.
bool AgreesWithOne(const Item& result, const std::vector<const ComparedRow*>& others,
                   double noise) {
  bool any = false;
  for (const ComparedRow* other : others) {
    if (other->golden->shape != result.shape) continue;
    any = true;
    const auto count = static_cast<int64_t>(measure::ElementsOf(result));
    const double error =
        measure::StatisticError(result.statistics, other->golden->statistics, count);
    if (error <= noise) return true;  // false for NaN
  }
  return !any;
}

}  // namespace

bool AllLoneResultsAreRead(const Comparison& comparison, double noise) {
  const std::vector<const ComparedRow*> unread = UnreadResults(comparison, true);
  if (unread.empty()) return true;
  const std::vector<const ComparedRow*> of_golden = UnreadResults(comparison, false);
  const Derived derived(comparison);
  return std::ranges::all_of(unread, [&](const ComparedRow* row) {
    return derived.LeavesOut(*row) && AgreesWithOne(*row->target, of_golden, noise);
  });
}

namespace {

constexpr std::string_view kRecomputed = "recomputed";

bool IsAlone(const ComparedCall& call) {
  return !call.paired() && call.unmatched_reason != match::CallPair::kDefault;
}

// An update shows where what differs behind it is less than this share of it: a rate or a decay
// that is a fifth of a percent off is no rounding.
constexpr double kShownBy = 512;

// A number that counts something, as optimizers do, tells nothing and leads to nothing but numbers.
bool IsCounter(const Item& item) { return measure::ElementsOf(item) == 1 && !IsTelling(item); }

// The largest relative error that counts as noise between these two runs.
double NoiseOf(const Comparison& comparison) {
  double coarsest = 0, level = 0;
  for (const ComparedRow& row : comparison.rows) {
    if (!measure::HasTensors(row) || !measure::IsGood(row.verdict)) continue;
    coarsest = std::max(coarsest, measure::RoundoffOf(*row.target, *row.golden));
    if (!measure::IsInput(row)) level = std::max(level, row.error);
  }
  level = measure::kNoiseFactor * std::max(level, measure::kUnseenCalls * coarsest);
  return std::min(level, measure::LargestNoise(coarsest));
}

// Equal for tensors of equal maximum and minimum.
uint64_t ExtremesOf(const Item& item) {
  const auto bits = [](const Recorded& recorded) {
    return std::bit_cast<uint64_t>(NumberOf(recorded).value_or(0) + 0.0);  // -0 is 0
  };
  return bits(item.statistics[0]) * 31 + bits(item.statistics[1]);
}

// Where the results of one side's own calls are seen again.
class Side {
 public:
  Side(const Comparison& comparison, bool of_target)
      : comparison_(comparison),
        of_target_(of_target),
        noise_(NoiseOf(comparison)),
        error_(comparison.calls.size()) {
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      const Text& name = NameOf(i);
      if (!name.empty()) calls_.emplace(name, i);
    }
    for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
      const ComparedRow& row = comparison.rows[i];
      const Slot<Item>& item = measure::SideOf(row, of_target);
      const auto key = item ? KeyOf(*item) : std::nullopt;
      if (!key) continue;
      places_[*key].push_back(i);
      by_extremes_[ExtremesOf(*item)].push_back(i);
      if (!measure::IsInput(row) && IsAlone(CallOf(row))) own_[key->element_count].push_back(i);
    }
  }

  // Finds the calls of this side alone that are settled. `other`: may be unsettled still.
  void Settle(const Side& other) {
    // What reads a result stands behind it, among the calls of one side alone.
    for (auto i = static_cast<uint32_t>(comparison_.calls.size()); i-- > 0;) {
      const ComparedCall& call = comparison_.calls[i];
      const bool is_own = IsAlone(call) && !NameOf(i).empty();
      if (is_own && call.unmatched_reason != kOtherBatch) error_[i] = ErrorOf(i, other);
    }
  }
  [[nodiscard]] bool is_settled(uint32_t call) const { return error_[call].has_value(); }

  // Whether a call of this side alone writes in place into what is trained, as optimizers do.
  [[nodiscard]] bool Updates(uint32_t call) const {
    const auto rows = RowsOf(call);
    if (rows.empty() || !WritesInPlace(NameOf(call)) || !ItemOf(rows.front())) return false;
    return ItemOf(rows.front())->requires_grad == true;
  }

 private:
  [[nodiscard]] const ComparedCall& CallOf(const ComparedRow& row) const {
    return comparison_.calls[row.call];
  }
  [[nodiscard]] const Text& NameOf(uint32_t call) const {
    return measure::NameOn(comparison_.calls[call], of_target_);
  }
  [[nodiscard]] const Slot<Item>& ItemOf(const ComparedRow& row) const {
    return measure::SideOf(row, of_target_);
  }
  [[nodiscard]] std::span<const ComparedRow> RowsOf(uint32_t call) const {
    return measure::RowsOf(comparison_, comparison_.calls[call]);
  }

  // How far the sides are apart where the results of a call arrive; nothing where one does not.
  [[nodiscard]] std::optional<double> ErrorOf(uint32_t call, const Side& other) const {
    std::optional<double> error;  // none for what returns nothing, and acts unseen
    for (const ComparedRow& row : RowsOf(call)) {
      const Slot<Item>& item = ItemOf(row);
      if (!item || measure::IsInput(*item)) continue;
      error = error.value_or(0);
      if (!item->is_tensor || IsCounter(*item) || IsIndex(row)) continue;
      const std::optional<double> arrives = ErrorWhere(row, other);
      if (!arrives) return std::nullopt;
      error = std::max(*error, *arrives);
    }
    if (!error && IsAroundGradients(call)) return 0;
    return error && Updates(call) && !IsShown(call, *error) ? std::nullopt : error;
  }

  // Whether the call is the backward of a module that returns nothing by itself, and what goes into
  // it is read by calls inside of it that are compared, or lead to what is.
  [[nodiscard]] bool IsAroundGradients(uint32_t call) const {
    const Text& name = NameOf(call);
    if (KindOfCall(name) != CallKind::kBackward || !SeriesOf(name).empty()) return false;
    return std::ranges::all_of(RowsOf(call), [&](const ComparedRow& row) {
      const Slot<Item>& item = ItemOf(row);
      const auto key = item && item->is_tensor ? KeyOf(*item) : std::nullopt;
      return !item || !item->is_tensor || (key && ErrorWhereSeen(row, *key));
    });
  }

  // Whether the result is whole numbers or truth values made of no others: what is made of them is
  // a result itself, and they are often read through views that no recorder sees.
  [[nodiscard]] bool IsIndex(const ComparedRow& made) const {
    const auto is_floating = [&](const ComparedRow& row) {
      const Slot<Item>& item = ItemOf(row);
      return item && item->is_tensor && measure::RoundoffOf(*item, *item) > 0;
    };
    return std::ranges::none_of(RowsOf(made.call), is_floating);
  }

  // The same of one result: it is compared, or leads to what is.
  [[nodiscard]] std::optional<double> ErrorWhere(const ComparedRow& made, const Side& other) const {
    const Item& item = *ItemOf(made);
    const std::optional<ContentKey> key = KeyOf(item);
    if (!key) return std::nullopt;
    std::optional<double> error = ErrorWhereSeen(made, *key);
    if (!error && !key->HasDigest()) error = ErrorWhereSeen(made, NegativeOf(item, *key));  // `-x`
    if (error || Updates(made.call)) return error;
    const bool is_backward = KindOfCall(NameOf(made.call)) == CallKind::kBackward;
    const bool arrives = (is_backward && IsPartOfSum(made)) || IsCast(made) ||
                         (!IsRead(*key) && other.Returns(item, *key, *this));
    return arrives ? std::optional(0.0) : std::nullopt;
  }

  // Where these contents stand in a pair that agrees, are read by a settled call, or are what one
  // returns (a module around it).
  [[nodiscard]] std::optional<double> ErrorWhereSeen(const ComparedRow& made,
                                                     const ContentKey& key) const {
    const auto found = places_.find(key);
    if (found == places_.end()) return std::nullopt;
    std::optional<double> least;
    for (const uint32_t index : found->second) {
      const ComparedRow& row = comparison_.rows[index];
      if (row.call == made.call) continue;
      std::optional<double> error;
      if (!CallOf(row).paired()) {
        const bool follows = !measure::IsInput(row) || row.call > made.call;
        error = follows ? error_[row.call] : error;
      } else if (measure::IsGood(row.verdict) && IsWritten(made, row)) {
        error = row.error;
      }
      if (error) least = std::min(*error, least.value_or(*error));
    }
    return least;
  }

  [[nodiscard]] bool IsRead(const ContentKey& key) const {
    const auto found = places_.find(key);
    return found != places_.end() && std::ranges::any_of(found->second, [&](uint32_t index) {
             return measure::IsInput(comparison_.rows[index]);
           });
  }

  // Whether a pair holds what the call wrote in place, and not what stood there before.
  [[nodiscard]] bool IsWritten(const ComparedRow& made, const ComparedRow& seen) const {
    if (!WritesInPlace(NameOf(made.call))) return true;
    return !(of_target_ && seen.call < made.call) && IsShown(made.call, seen.error);
  }

  // Whether a call that writes in place moved what it wrote into by far more than an error.
  [[nodiscard]] bool IsShown(uint32_t call, double error) const {
    if (error == 0) return true;
    const Item* after = nullptr;
    const Item* before = nullptr;
    for (const ComparedRow& row : RowsOf(call)) {
      const Slot<Item>& item = ItemOf(row);
      if (!item || !item->is_tensor) continue;
      const Item*& place = measure::IsInput(*item) ? before : after;
      if (place == nullptr) place = &*item;
    }
    if (before == nullptr || after == nullptr) return false;
    const auto count = static_cast<int64_t>(measure::ElementsOf(*after));
    const double moved = measure::StatisticError(after->statistics, before->statistics, count);
    return kShownBy * error <= moved;
  }

  // Casts are not recorded; a wider type keeps the extremes.
  [[nodiscard]] bool IsCast(const ComparedRow& made) const {
    const Item& item = *ItemOf(made);
    return IsTelling(item) && std::ranges::any_of(WithExtremesOf(item), [&](uint32_t index) {
             const ComparedRow& row = comparison_.rows[index];
             const Item& each = *ItemOf(row);
             if (!measure::IsInput(each) || each.shape != item.shape) return false;
             if (each.dtype == item.dtype || !measure::HasSameExtremes(each, item)) return false;
             return CallOf(row).paired() ? measure::IsGood(row.verdict)
                                         : row.call > made.call && is_settled(row.call);
           });
  }

  // The rows of tensors that may have the same maximum and minimum.
  [[nodiscard]] std::span<const uint32_t> WithExtremesOf(const Item& item) const {
    const auto found = by_extremes_.find(ExtremesOf(item));
    return found == by_extremes_.end() ? std::span<const uint32_t>() : found->second;
  }

  // Whether a forward call of this side made what stands in the row, and did not only pass it on.
  [[nodiscard]] bool IsMade(const ComparedRow& row) const {
    const Slot<Item>& item = ItemOf(row);
    if (!item || item->role != ItemRole::kOutput || !item->is_tensor) return false;
    if (KindOfCall(NameOf(row.call)) != CallKind::kForward) return false;
    const auto key = KeyOf(*item);
    return std::ranges::none_of(RowsOf(row.call), [&](const ComparedRow& each) {
      return ItemOf(each) && measure::IsInput(*ItemOf(each)) && KeyOf(*ItemOf(each)) == key;
    });
  }

  // The last call of this side that made `value`, or what is repeated in it.
  [[nodiscard]] std::optional<uint32_t> MakerOf(const Item& value) const {
    const auto key = IsTelling(value) ? KeyOf(value) : std::nullopt;
    if (!key) return std::nullopt;
    std::optional<uint32_t> maker;
    if (const auto found = places_.find(*key); found != places_.end()) {
      for (const uint32_t index : found->second) {
        const ComparedRow& row = comparison_.rows[index];
        if (IsMade(row)) maker = row.call;
      }
    }
    if (maker) return maker;
    for (const uint32_t index : WithExtremesOf(value)) {
      const ComparedRow& row = comparison_.rows[index];
      if (IsRepeatOf(value, *ItemOf(row)) && IsMade(row)) return row.call;
    }
    return maker;
  }

  // A gradient that no call reads as it is was added to others unseen: the backward of the call
  // that made the value reads the sum. Which of several operands of its size it belongs to is not
  // told: all must be met.
  [[nodiscard]] bool IsPartOfSum(const ComparedRow& made) const {
    const auto forward = calls_.find(ForwardNameOf(NameOf(made.call)));
    if (forward == calls_.end()) return false;
    const double size = measure::ElementsOf(*ItemOf(made));
    const auto is_operand = [&](const ComparedRow& row) {
      const Slot<Item>& item = ItemOf(row);
      return item && measure::IsInput(*item) && item->is_tensor && item->requires_grad != false;
    };
    const auto rows = RowsOf(forward->second);
    const bool fits_one = std::ranges::any_of(rows, [&](const ComparedRow& row) {
      return is_operand(row) && measure::ElementsOf(*ItemOf(row)) == size;
    });
    bool any = false;
    for (const ComparedRow& row : rows) {
      if (!is_operand(row)) continue;
      if (fits_one && measure::ElementsOf(*ItemOf(row)) != size) continue;
      const std::optional<uint32_t> maker = MakerOf(*ItemOf(row));
      const auto call = maker ? calls_.find(BackwardNameOf(NameOf(*maker))) : calls_.end();
      if (call == calls_.end() || !IsMetIn(call->second)) return false;
      any = true;
    }
    return any;
  }

  // Whether what a backward call reads agrees, or leads to what does.
  [[nodiscard]] bool IsMetIn(uint32_t call) const {
    if (!comparison_.calls[call].paired()) return is_settled(call);
    return std::ranges::any_of(RowsOf(call), [](const ComparedRow& row) {
      return measure::IsInput(row) && measure::HasTensors(row) && measure::IsGood(row.verdict);
    });
  }

  // Whether a call of this side alone returns what agrees with `item` of the other side: the last
  // results, which nobody reads.
  [[nodiscard]] bool Returns(const Item& item, const ContentKey& key, const Side& side) const {
    const auto found = own_.find(key.element_count);
    if (found == own_.end() || key.HasDigest() || !IsTelling(item)) return false;
    return std::ranges::any_of(found->second, [&](uint32_t index) {
      const Item& own = *ItemOf(comparison_.rows[index]);
      const double error =
          measure::StatisticError(own.statistics, item.statistics, key.element_count);
      return error <= noise_ && AreElementsClose(own, item, side);
    });
  }

  [[nodiscard]] bool AreElementsClose(const Item& own, const Item& item, const Side& side) const {
    if (comparison_.mode != CompareMode::kTensor) return true;
    const auto ours = RecordedElements(comparison_, own, of_target_);
    const auto theirs = RecordedElements(comparison_, item, side.of_target_);
    if (!ours || !theirs || ours->size() != theirs->size()) return false;
    double apart = 0, size = 0;
    for (size_t i = 0; i < ours->size(); ++i) {
      apart += ((*ours)[i] - (*theirs)[i]) * ((*ours)[i] - (*theirs)[i]);
      size += (*theirs)[i] * (*theirs)[i];
    }
    return std::sqrt(apart) <= noise_ * std::sqrt(size);
  }

  using RowsByContents = std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash>;

  const Comparison& comparison_;
  const bool of_target_;
  const double noise_;                        // largest relative error that counts as noise
  std::vector<std::optional<double>> error_;  // per settled call: where its results arrive
  std::unordered_map<std::string_view, uint32_t> calls_;
  RowsByContents places_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_extremes_;
  std::unordered_map<int64_t, std::vector<uint32_t>> own_;  // results of calls alone, by size
};

}  // namespace

namespace {

// The modules around the settled functions of one side.
std::unordered_set<std::string_view> ModulesAround(const Run& run, const Comparison& comparison,
                                                   const Side& side, bool of_target) {
  constexpr int kMostNesting = 1000;  // a cycle in construct.json must not hang
  std::unordered_set<std::string_view> modules;
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const Text& name = measure::NameOn(comparison.calls[i], of_target);
    if (!side.is_settled(i) || SeriesOf(name).empty()) continue;
    std::string_view module = run.ParentOf(name);
    for (int k = 0; k < kMostNesting && !module.empty(); ++k, module = run.ParentOf(module)) {
      modules.insert(module);
    }
  }
  return modules;
}

// The calls of another form of which one recording only lacks values, and those that do something
// else than their namesakes: what they lead to may agree, but they are not judged.
// A module around functions that go another way (`others`) is no such call.
std::unordered_set<std::string_view> NeverJudged(
    const Comparison& comparison, const std::unordered_set<std::string_view>& others) {
  std::unordered_set<std::string_view> names;
  const double noise = NoiseOf(comparison);
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (!IsAlone(call) || call.target_name.empty()) continue;
    // The gradient of a call of another form has another form.
    const ComparedCall* forward = ForwardCallOf(comparison, call.target_name);
    const bool is_damaged =
        call.unmatched_reason.ends_with("-differs") && (forward == nullptr || forward->paired()) &&
        !others.contains(call.target_name) && LacksValuesOnly(comparison, i, noise);
    if (is_damaged || call.unmatched_reason == kSameName) names.insert(call.target_name);
  }
  return names;
}

// Whether steps of optimizers are recorded as a whole, on both sides the same ones, and agree: then
// it does not matter in which calls each side makes them.
bool StepsAgree(const Comparison& comparison) {
  bool any = false;
  for (const ComparedCall& call : comparison.calls) {
    if (!call.name().starts_with(kOptimizerStep)) continue;
    const bool agrees =
        std::ranges::all_of(measure::RowsOf(comparison, call), [](const ComparedRow& row) {
          return !measure::HasTensors(row) || measure::IsGood(row.verdict) ||
                 row.reason == "zero-both";
        });
    if (!call.paired() || !agrees) return false;
    any = true;
  }
  return any;
}

// Whether the call, of one side alone, was made by an optimizer.
bool IsInsideOptimizer(const Run& target, const Run& golden, const ComparedCall& call) {
  const bool of_target = !call.target_name.empty(), of_golden = !call.golden_name.empty();
  return (!of_target || target.ParentOf(call.target_name) == kInsideOptimizer) &&
         (!of_golden || golden.ParentOf(call.golden_name) == kInsideOptimizer);
}

}  // namespace

ComparedCall* MarkEquivalentCalls(const Run& target_run, const Run& golden_run,
                                  Comparison& comparison) {
  const bool is_wrong = std::ranges::any_of(
      comparison.rows, [](const ComparedRow& row) { return measure::IsBad(row.verdict); });
  const bool is_of_calls = !comparison.of_saves && !comparison.of_graphs();
  if (is_wrong || comparison.first_wrong_call || !is_of_calls) return nullptr;
  if (std::ranges::none_of(comparison.calls, IsAlone)) return nullptr;
  // What a recording that ends early lacks is no way of its own.
  const auto is_cut = [](const RunLoss& loss) {
    return loss.ended_early || loss.truncated || loss.unfinished;
  };
  if (is_cut(comparison.target_loss) || is_cut(comparison.golden_loss)) return nullptr;
  // What one side's backward pass lacks is read by nothing that could show a difference.
  if (CutsAPath(comparison, true) || CutsAPath(comparison, false)) return nullptr;
  Side target(comparison, true), golden(comparison, false);
  ComparedCall* first = nullptr;
  const ComparedCall* unread = nullptr;  // an update that nothing recorded reads
  // Modules may stand before or behind the calls inside them.
  for (int round = 0; round < 2; ++round) {
    target.Settle(golden);
    golden.Settle(target);
  }
  std::unordered_set<std::string_view> others = ModulesAround(target_run, comparison, target, true);
  others.merge(ModulesAround(golden_run, comparison, golden, false));
  const std::unordered_set<std::string_view> never = NeverJudged(comparison, others);
  const bool steps_agree = StepsAgree(comparison);
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    ComparedCall& call = comparison.calls[i];
    if (!IsAlone(call)) continue;
    const bool of_target = !call.target_name.empty(), of_golden = !call.golden_name.empty();
    if (call.unmatched_reason == kRecomputed || never.contains(call.name())) continue;
    const bool is_settled =
        (steps_agree && IsInsideOptimizer(target_run, golden_run, call)) ||
        ((!of_target || target.is_settled(i)) && (!of_golden || golden.is_settled(i)));
    if (!is_settled) {
      if ((of_target ? target : golden).Updates(i)) unread = &call;
      continue;
    }
    call.unmatched_reason = verdict::kEquivalent;
    call.unmatched_detail = {};
    for (uint32_t k = 0; k < call.row_count; ++k) {
      comparison.rows[call.first_row + k].reason = verdict::kEquivalent;
    }
    if (first == nullptr) first = &call;
  }
  if (unread != nullptr) {
    comparison.warnings.push_back(
        fmt::format("{}: what the optimizer leaves is read by no recorded call behind it. Record "
                    "and compare the next step as well: its parameters tell",
                    unread->name()));
  }
  return first;
}

}  // namespace plumbline::verdict
