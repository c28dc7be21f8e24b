#include "verdict/unpaired_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "match/name_match.h"
#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/call_rows.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

namespace {

std::vector<const Item*> TensorResults(const Comparison& comparison, uint32_t index) {
  const ComparedCall& call = comparison.calls[index];
  std::vector<const Item*> results;
  for (uint32_t k = 0; k < call.row_count; ++k) {
    const Item& item = comparison.rows[call.first_row + k].item();
    if (item.is_tensor && !measure::IsInput(item)) results.push_back(&item);
  }
  return results;
}

// What is not there cannot agree.
bool HasStatistics(const Item& item) { return NumberOf(item.statistics[0]).has_value(); }

bool ReturnsWholeNumbers(const std::vector<const Item*>& results) {
  return std::all_of(results.begin(), results.end(),
                     [](const Item* each) { return measure::IsExact(*each, *each); });
}

bool Computes(const ComparedCall& call) {
  const measure::CallClass known = measure::ClassOfCall(call.target_name);
  return known != measure::CallClass::kCopy && known != measure::CallClass::kUninitialised;
}

}  // namespace

UnpairedCalls::UnpairedCalls(const Comparison& comparison)
    : comparison_(comparison),
      is_good_(comparison.calls.size()),
      is_right_(comparison.calls.size()) {
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.paired() || call.unmatched_reason == match::CallPair::kDefault) continue;
    if (!call.target_name.empty()) target_names_.insert(call.target_name);
    if (call.target_name.empty()) golden_by_name_.insert_or_assign(call.golden_name, i);
    for (uint32_t k = 0; k < call.row_count; ++k) {
      const ComparedRow& row = comparison.rows[call.first_row + k];
      if (row.target && !measure::IsInput(*row.target) && IsTelling(*row.target)) {
        if (const auto key = KeyOf(*row.target)) target_[*key].push_back(i);
      }
      if (row.golden && !measure::IsInput(*row.golden) && IsTelling(*row.golden)) {
        if (const auto key = KeyOf(*row.golden)) golden_[*key].push_back(i);
      }
    }
  }
}

const std::vector<uint32_t>* UnpairedCalls::Find(const Producers& producers, const Item& item) {
  if (producers.empty() || !IsTelling(item)) return nullptr;
  const std::optional<ContentKey> key = KeyOf(item);
  if (!key) return nullptr;
  auto found = producers.find(*key);
  // `-x` is not recorded.
  if (found == producers.end() && !key->HasDigest()) found = producers.find(NegativeOf(item, *key));
  return found == producers.end() ? nullptr : &found->second;
}

std::optional<uint32_t> UnpairedCalls::TargetProducer(const Item& item, uint32_t consumer) const {
  const std::vector<uint32_t>* found = Find(target_, item);
  if (found == nullptr) return std::nullopt;
  const std::vector<uint32_t>& calls = *found;
  const auto after = std::lower_bound(calls.begin(), calls.end(), consumer);
  if (after == calls.begin()) return std::nullopt;
  return *(after - 1);
}

std::optional<uint32_t> UnpairedCalls::GoldenProducer(const Item& item) const {
  const std::vector<uint32_t>* found = Find(golden_, item);
  return found == nullptr ? std::nullopt : std::optional(found->front());
}

UnpairedCalls::Region UnpairedCalls::RegionOf(uint32_t producer) const {
  constexpr double kMostCondition = 1e3;
  Region region;
  for (const uint32_t at : LeadingTo(producer)) {
    const ComparedCall& call = comparison_.calls[at];
    std::vector<measure::InputError> read;
    for (uint32_t k = 0; k < call.row_count; ++k) {
      const Item& each = comparison_.rows[call.first_row + k].item();
      if (!each.is_tensor) continue;
      region.roundoff = std::max(region.roundoff, measure::RoundoffOf(each, each));
      if (measure::IsInput(each)) read.push_back({&each, 1});
    }
    for (const Item* result : TensorResults(comparison_, at)) {
      const double found = measure::PropagationTo(*result, call.target_name, read).from_inputs;
      region.condition = std::max(region.condition, found);
    }
  }
  region.condition = std::min(region.condition, kMostCondition);
  return region;
}

bool UnpairedCalls::IsUnpaired(std::string_view target_name) const {
  return target_names_.contains(target_name);
}

std::vector<uint32_t> UnpairedCalls::LeadingTo(uint32_t call, Through through) const {
  std::vector<uint32_t> found{call};
  std::unordered_set<uint32_t> met{call};
  // Producers stand before their consumers, so this ends.
  for (size_t next = 0; next < found.size(); ++next) {
    const ComparedCall& at = comparison_.calls[found[next]];
    const bool is_whole = through == Through::kNumbers &&
                          ReturnsWholeNumbers(TensorResults(comparison_, found[next]));
    for (uint32_t k = 0; k < at.row_count; ++k) {
      const ComparedRow& row = comparison_.rows[at.first_row + k];
      if (!row.target || !measure::IsInput(*row.target)) continue;
      if (is_whole && !measure::IsExact(*row.target, *row.target)) continue;
      const std::optional<uint32_t> producer = TargetProducer(*row.target, found[next]);
      if (producer && met.insert(*producer).second) found.push_back(*producer);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void UnpairedCalls::MarkGood(uint32_t call, Agreement agreement) {
  const bool is_close = agreement == Agreement::kClose;
  if (is_close ? is_right_[call] : is_good_[call]) return;  // and so are those before it
  for (const uint32_t each : LeadingTo(call, Through::kNumbers)) {
    is_good_[each] = true;
    if (is_close) is_right_[each] = true;
  }
}

size_t UnpairedCalls::CountResults(uint32_t call) const {
  const auto rows = measure::RowsOf(comparison_, comparison_.calls[call]);
  return static_cast<size_t>(
      std::ranges::count_if(rows, [](const ComparedRow& row) { return !measure::IsInput(row); }));
}

bool UnpairedCalls::ResultsAgree(uint32_t call, double largest_error) const {
  const auto found = golden_by_name_.find(comparison_.calls[call].target_name);
  if (found == golden_by_name_.end()) return false;
  const std::vector<const Item*> target = TensorResults(comparison_, call);
  const std::vector<const Item*> golden = TensorResults(comparison_, found->second);
  // One side may return gradients of more of its inputs, being another node of the framework. Of as
  // many inputs the target may leave out none.
  const size_t count = std::min(target.size(), golden.size());
  const bool is_one_node = CountResults(call) == CountResults(found->second);
  if (count == 0 || (is_one_node && target.size() < golden.size())) return false;
  for (size_t i = 0; i < count; ++i) {
    const Result<int64_t> a = ElementCount(target[i]->shape);
    const Result<int64_t> b = ElementCount(golden[i]->shape);
    if (!a || !b || *a != *b) return false;
    if (!HasStatistics(*target[i]) || !HasStatistics(*golden[i])) return false;
    const double error = measure::StatisticError(target[i]->statistics, golden[i]->statistics, *b);
    if (!(error <= largest_error)) return false;
  }
  return true;
}

uint32_t UnpairedCalls::ToBlame(uint32_t call) const {
  std::vector<uint32_t> region = LeadingTo(call);
  std::erase_if(region, [&](uint32_t each) { return is_good_[each]; });
  const auto first = [&](auto&& fits) {
    const auto found = std::find_if(region.begin(), region.end(),
                                    [&](uint32_t each) { return fits(comparison_.calls[each]); });
    return found == region.end() ? std::optional<uint32_t>() : *found;
  };
  const auto other_form = first([](const ComparedCall& each) {
    return Computes(each) && each.unmatched_reason.ends_with("-differs");
  });
  if (other_form) return *other_form;
  return first(Computes).value_or(call);
}

const ComparedCall* GoldenOfSameName(const Comparison& comparison, const ComparedCall& call) {
  const auto found = std::ranges::find_if(comparison.calls, [&](const ComparedCall& each) {
    return each.target_name.empty() && each.golden_name == call.target_name;
  });
  return found == comparison.calls.end() ? nullptr : &*found;
}

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
  const ComparedCall* other = GoldenOfSameName(comparison, call);
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
    const bool is_pair = call.paired() || call.unmatched_reason == kSameName;
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

SameNamedCalls FindSameNamed(const Comparison& comparison) {
  SameNamedCalls found;
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

SameNamedCalls ThatDidRight(const Comparison& comparison, const SameNamedCalls& same_named,
                            const std::vector<bool>& arrived) {
  // Zeros do not tell where they come from: that a call which did right reads some is enough.
  const auto is_bare = [](const ComparedRow& row) { return !IsTelling(*row.target); };
  Readers readers;
  for (const ComparedRow& row : comparison.rows) {
    if (row.target && is_bare(row) && arrived[row.call]) Add(row, readers);
  }
  SameNamedCalls right;
  std::vector<bool> is_right = arrived;
  for (const uint32_t each : same_named.forward) {
    is_right[each] = arrived[each] || IsRead(comparison, each, readers, is_bare);
  }
  SpreadWrong(comparison, same_named.forward, is_right);
  for (const uint32_t each : same_named.forward) {
    if (is_right[each]) right.forward.push_back(each);
  }
  right.are_all = same_named.are_all && right.forward.size() == same_named.forward.size();
  right.backward = BackwardOf(comparison, right.forward);
  return right;
}

}  // namespace plumbline::verdict
