#include "pipeline/culprit/namesakes.h"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/row_verdict.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// More pairs that read other values follow from a fault, and to look at them again would take long.
constexpr size_t kMost = 16384;

// Calls of one API that read wrong tensors and may have changed places.
constexpr size_t kNear = 4;

// Contents of the target and the last call that reads them.
using Readers = std::unordered_map<ContentKey, uint32_t, ContentKeyHash>;

// What the target reads there, and its negative: `-x` is not recorded.
void Add(const ComparedRow& row, Readers& readers) {
  const auto key = row.target && measure::IsInput(*row.target) ? KeyOf(*row.target) : std::nullopt;
  if (!key) return;
  const auto add = [&](const ContentKey& each) {
    uint32_t& last = readers[each];
    last = std::max(last, row.call);
  };
  add(*key);
  if (!key->HasDigest()) add(NegativeOf(*row.target, *key));
}

// Whether one of `readers` stands behind `call` and reads a result of it that `counts`.
template <typename Predicate>
bool IsRead(const Comparison& comparison, uint32_t call, const Readers& readers,
            const Predicate& counts) {
  const auto rows = measure::RowsOf(comparison, comparison.calls[call]);
  return std::ranges::any_of(rows, [&](const ComparedRow& row) {
    if (measure::IsInput(row) || !counts(row)) return false;
    const auto key = KeyOf(*row.target);
    const auto found = key ? readers.find(*key) : readers.end();
    return found != readers.end() && found->second > call;
  });
}

// Whether a tensor that the call reads is another altogether, and not merely less exact.
bool ReadsAnother(const Comparison& comparison, const ComparedCall& call) {
  return std::ranges::any_of(measure::RowsOf(comparison, call), [](const ComparedRow& row) {
    const bool is_broken =
        measure::IsInput(row) && row.item().is_tensor && row.verdict == Verdict::kBroken;
    return is_broken && !(row.error < kAnother);  // checksums and infinities have no error
  });
}

// What a later call reads of these and is not right makes them wrong, from the last to the first.
void SpreadWrong(const Comparison& comparison, const std::vector<uint32_t>& calls,
                 std::vector<bool>& is_right) {
  Readers wrong;  // what is read as wrong, or by a call which is
  const auto add = [&](const ComparedRow& row) {
    if (row.target && IsTelling(*row.target)) Add(row, wrong);
  };
  for (const ComparedRow& row : comparison.rows) {
    if (measure::IsBad(row.verdict)) add(row);
  }
  const auto any = [](const ComparedRow&) { return true; };
  for (auto each = calls.rbegin(); each != calls.rend(); ++each) {
    if (is_right[*each] && !IsRead(comparison, *each, wrong, any)) continue;
    is_right[*each] = false;
    for (const ComparedRow& row : measure::RowsOf(comparison, comparison.calls[*each])) add(row);
  }
}

std::vector<uint32_t> BackwardOf(const Comparison& comparison,
                                 const std::vector<uint32_t>& forward) {
  std::unordered_set<std::string_view> names;
  for (const uint32_t each : forward) names.insert(comparison.calls[each].target_name);
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < comparison.calls.size() && !names.empty(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    const bool is_pair = call.paired() || call.unmatched_reason == kNamesake;
    if (is_pair && names.contains(ForwardNameOf(call.target_name))) found.push_back(i);
  }
  return found;
}

// Where the sides may number their calls otherwise: everywhere if each has forward calls of its
// own, as another way to compute has; where one side only has some, as after a call that is dropped
// or added, among the calls of their APIs; and among calls of one API of which two near each other
// read what the other one reads on the other side, as `b[t] + h * a[t]` does for `a[t] * h + b[t]`.
class Renumbered {
 public:
  explicit Renumbered(const Comparison& comparison) {
    AddExchanged(comparison);
    for (const ComparedCall& call : comparison.calls) {
      if (call.paired() || KindOfCall(call.name()) != CallKind::kForward) continue;
      const bool has_form = !call.target_name.empty() && !call.unmatched_detail.empty();
      is_of_target_ |= !call.target_name.empty() && !has_form;
      is_of_golden_ |= call.target_name.empty();
      if (std::string series = SeriesOf(call.name()); !series.empty()) {
        series_.insert(std::move(series));
      }
    }
  }

  [[nodiscard]] bool MayBe(const ComparedCall& call) const {
    return (is_of_target_ && is_of_golden_) || series_.contains(SeriesOf(call.target_name));
  }

 private:
  static bool AreAlike(const Item& target, const Item& golden) {
    if (target.shape != golden.shape || !IsTelling(target) || !IsTelling(golden)) return false;
    const auto count = static_cast<int64_t>(measure::ElementsOf(golden));
    return measure::StatisticError(target.statistics, golden.statistics, count) < kAnother;
  }

  // What the call reads first and wrongly, or null.
  static const ComparedRow* WrongInput(const Comparison& comparison, const ComparedCall& call) {
    const auto rows = measure::RowsOf(comparison, call);
    const auto found = std::ranges::find_if(rows, [](const ComparedRow& row) {
      return measure::IsInput(row) && row.item().is_tensor && measure::IsBad(row.verdict);
    });
    return found == rows.end() ? nullptr : &*found;
  }

  void AddExchanged(const Comparison& comparison) {
    std::unordered_map<std::string, std::deque<const ComparedRow*>> last;  // of each series
    for (const ComparedCall& call : comparison.calls) {
      if (!call.paired() || KindOfCall(call.target_name) != CallKind::kForward) continue;
      const ComparedRow* read = WrongInput(comparison, call);
      std::string series = read == nullptr ? std::string() : SeriesOf(call.target_name);
      if (series.empty()) continue;
      std::deque<const ComparedRow*>& near = last[series];
      const bool is_exchanged = std::ranges::any_of(near, [&](const ComparedRow* each) {
        return AreAlike(*each->target, *read->golden) && AreAlike(*read->target, *each->golden);
      });
      near.push_back(read);
      if (near.size() > kNear) near.pop_front();
      if (is_exchanged) series_.insert(std::move(series));
    }
  }

  bool is_of_target_ = false, is_of_golden_ = false;
  std::unordered_set<std::string> series_;
};

}  // namespace

Namesakes FindNamesakes(const Comparison& comparison) {
  Namesakes found;
  const Renumbered renumbered(comparison);
  found.are_all = true;
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (!call.paired() || KindOfCall(call.target_name) != CallKind::kForward) continue;
    if (!ReadsWrongTensor(measure::RowsOf(comparison, call))) continue;
    const bool is_other = renumbered.MayBe(call) && ReadsAnother(comparison, call);
    if (is_other) found.forward.push_back(i);
    found.are_all = found.are_all && is_other;
  }
  if (found.forward.size() > kMost) return {};
  if (found.empty()) return found;
  const auto any = [](const ComparedRow&) { return true; };
  Readers readers;
  for (const ComparedRow& row : comparison.rows) Add(row, readers);
  const auto ends = std::erase_if(
      found.forward, [&](uint32_t each) { return !IsRead(comparison, each, readers, any); });
  found.are_all = found.are_all && ends == 0;
  found.backward = BackwardOf(comparison, found.forward);
  return found;
}

Namesakes ThatDidRight(const Comparison& comparison, const Namesakes& namesakes,
                       const std::vector<bool>& arrived) {
  // Zeros do not tell where they come from: that a call which did right reads some is enough.
  const auto is_bare = [](const ComparedRow& row) { return !IsTelling(*row.target); };
  Readers readers;
  for (const ComparedRow& row : comparison.rows) {
    if (row.target && is_bare(row) && arrived[row.call]) Add(row, readers);
  }
  Namesakes right;
  std::vector<bool> is_right = arrived;
  for (const uint32_t each : namesakes.forward) {
    is_right[each] = arrived[each] || IsRead(comparison, each, readers, is_bare);
  }
  SpreadWrong(comparison, namesakes.forward, is_right);
  for (const uint32_t each : namesakes.forward) {
    if (is_right[each]) right.forward.push_back(each);
  }
  right.are_all = namesakes.are_all && right.forward.size() == namesakes.forward.size();
  right.backward = BackwardOf(comparison, right.forward);
  return right;
}

}  // namespace plumbline::pipeline
