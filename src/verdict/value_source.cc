#include "verdict/value_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/call_rows.h"
#include "verdict/cause_candidates.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/rightly_different.h"

namespace plumbline::verdict {

namespace {

// Calls of one side without counterpart, by what they return.
class LoneResults {
 public:
  LoneResults(const Comparison& comparison, bool of_target) : of_target_(of_target) {
    for (const ComparedRow& row : comparison.rows) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || item->role != ItemRole::kOutput) continue;
      if (comparison.calls[row.call].paired()) continue;
      if (const auto key = KeyOf(*item)) calls_.try_emplace(*key, row.call);
    }
  }

  // The call that made an input of another such call.
  [[nodiscard]] std::optional<uint32_t> MakerOf(const ComparedRow& row) const {
    const Slot<Item>& item = measure::SideOf(row, of_target_);
    if (!item || !measure::IsInput(row) || !IsTelling(*item)) return std::nullopt;
    const std::optional<ContentKey> key = KeyOf(*item);
    const auto found = key ? calls_.find(*key) : calls_.end();
    if (found == calls_.end() || found->second >= row.call) return std::nullopt;
    return found->second;
  }

 private:
  const bool of_target_;
  std::unordered_map<ContentKey, uint32_t, ContentKeyHash> calls_;
};

// The last call before the row that returned what the target reads there.
std::optional<uint32_t> LastMaker(const Comparison& comparison, const ComparedRow& row) {
  const uint32_t end = comparison.calls[row.call].first_row;
  for (uint32_t i = end; i-- > 0;) {
    const ComparedRow& each = comparison.rows[i];
    const bool is_result = each.target && each.target->role == ItemRole::kOutput;
    if (!is_result) continue;
    const bool is_made =
        HasSameContents(*each.target, *row.target) || IsRepeatOf(*row.target, *each.target);
    if (is_made) return each.call;
  }
  return std::nullopt;
}

// Whether a pair that agrees reads a result of this call of one side.
bool ArrivesWell(const Comparison& comparison, const ComparedCall& call, bool of_target) {
  for (const ComparedRow& made : measure::RowsOf(comparison, call)) {
    const Slot<Item>& result = measure::SideOf(made, of_target);
    if (!result || measure::IsInput(made) || !IsTelling(*result)) continue;
    const auto reads = [&](const ComparedRow& row) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      return measure::IsGood(row.verdict) && item && measure::IsInput(row) &&
             comparison.calls[row.call].paired() && HasSameContents(*item, *result);
    };
    if (std::any_of(comparison.rows.begin(), comparison.rows.end(), reads)) return true;
  }
  return false;
}

// Calls of a direction without counterpart on one side; 0 unless one is of the series of `name`.
size_t CountLone(const Comparison& comparison, const std::string& name, bool of_target) {
  const std::string series = SeriesOf(name);
  if (series.empty()) return 0;
  size_t count = 0;
  bool is_of_series = false;
  for (const ComparedCall& call : comparison.calls) {
    const Text& own = measure::NameOn(call, of_target);
    if (call.paired() || own.empty() || KindOfCall(own) != KindOfCall(name)) continue;
    ++count;
    is_of_series = is_of_series || SeriesOf(own) == series;
  }
  return is_of_series ? count : 0;
}

}  // namespace

bool IsRepeatOf(const Item& item, const Item& made) {
  const double count = measure::ElementsOf(item), own = measure::ElementsOf(made);
  if (!made.is_tensor || own < 2 || count <= own || std::fmod(count, own) != 0) return false;
  if (!measure::HasSameExtremes(item, made)) return false;
  const auto mean = NumberOf(item.statistics[2]), mean_of_made = NumberOf(made.statistics[2]);
  const auto norm = NumberOf(item.statistics[3]), norm_of_made = NumberOf(made.statistics[3]);
  if (!mean || !mean_of_made) return false;
  if (!norm || !norm_of_made) return *mean == *mean_of_made;
  // Sums over more elements round otherwise.
  const double rounding =
      measure::kUnseenCalls * measure::kNoiseFactor * measure::RoundoffOf(item, made) * *norm;
  return std::abs(*norm - *norm_of_made * std::sqrt(count / own)) <= rounding &&
         std::abs(*mean - *mean_of_made) * std::sqrt(count) <= rounding;
}

bool WritesInPlace(std::string_view name) {
  static constexpr std::string_view kOperators[] = {
      "setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod",
      "ipow",    "iand", "ior",  "ixor", "imatmul",  "ilshift",   "irshift"};
  const std::optional<CallName> parts = ParseCallName(name);
  if (!parts || parts->form != CallName::Form::kApi) return false;
  const std::string_view api = parts->path;
  if (!api.ends_with("__")) return api.ends_with('_');
  return api.starts_with("__") && api.size() > 4 &&
         std::find(std::begin(kOperators), std::end(kOperators), api.substr(2, api.size() - 4)) !=
             std::end(kOperators);
}

std::string ProducerOf(const Comparison& comparison, const ComparedRow& row, bool of_target) {
  std::string found = UnmatchedProducer(comparison, row, of_target);
  if (!found.empty()) return found;
  const Item& wanted = *measure::SideOf(row, of_target);
  if (!IsTelling(wanted)) return {};
  for (const ComparedRow& each : comparison.rows) {
    // Golden's calls may stand elsewhere in its own order: a later one counts if there is no other.
    if (each.call >= row.call && (of_target || !found.empty())) break;
    const Slot<Item>& made = measure::SideOf(each, of_target);
    if (!made || made->role != ItemRole::kOutput || !HasSameContents(*made, wanted)) continue;
    if (!MayMake(comparison, each.call, row, of_target)) continue;
    found = measure::NameOn(comparison.calls[each.call], of_target);
  }
  return found;
}

std::string WriterInto(const Comparison& comparison, const ComparedRow& row, bool of_target) {
  if (!row.target || !row.golden || !IsTelling(*measure::SideOf(row, of_target))) return {};
  if (!ProducerOf(comparison, row, of_target).empty()) return {};
  const LoneResults results(comparison, of_target);
  // The written tensor itself, or a view that calls of that side alone took of it.
  const auto writes = [&](uint32_t call) {
    for (std::optional<uint32_t> at = call; at;) {
      const auto rows = measure::RowsOf(comparison, comparison.calls[*at]);
      if (rows.empty()) return false;
      const Slot<Item>& first = measure::SideOf(rows.front(), of_target);
      if (!first || !measure::IsInput(rows.front())) return false;
      if (HasSameContents(*first, *row.target) || HasSameContents(*first, *row.golden)) return true;
      at = results.MakerOf(rows.front());  // earlier, so this ends
    }
    return false;
  };
  for (uint32_t i = row.call; i-- > 0;) {
    const ComparedCall& call = comparison.calls[i];
    const Text& name = measure::NameOn(call, of_target);
    if (!call.paired() && WritesInPlace(name) && writes(i)) return name;
  }
  return {};
}

std::string LoneCallLeadingTo(const Comparison& comparison, uint32_t call) {
  constexpr size_t kMostCalls = 12;
  const bool any = std::any_of(
      comparison.calls.begin(), comparison.calls.begin() + call,
      [](const ComparedCall& each) { return !each.paired() && !each.target_name.empty(); });
  if (!any) return {};
  std::vector<uint32_t> path{call};  // nearest first
  for (size_t next = 0; next < path.size() && next < kMostCalls; ++next) {
    for (const ComparedRow& row : measure::RowsOf(comparison, comparison.calls[path[next]])) {
      const bool is_read = row.target && measure::IsInput(row) && IsTelling(*row.target);
      if (!is_read) continue;
      std::string lone = UnmatchedProducer(comparison, row, /*of_target=*/true);
      if (!lone.empty()) return lone;
      const std::optional<uint32_t> maker = LastMaker(comparison, row);
      if (maker && std::find(path.begin(), path.end(), *maker) == path.end()) {
        path.push_back(*maker);
      }
    }
  }
  return {};
}

LoneCalls LoneCallsBefore(const Comparison& comparison, const std::string& source, bool of_target) {
  const auto at =
      std::find_if(comparison.calls.begin(), comparison.calls.end(), [&](const ComparedCall& call) {
        return !call.paired() && measure::NameOn(call, of_target) == source;
      });
  if (at == comparison.calls.end()) return {};
  const CallKind kind = KindOfCall(source);
  const LoneResults results(comparison, of_target);
  // Makers stand before what takes their results, so this ends.
  std::vector<uint32_t> open{static_cast<uint32_t>(at - comparison.calls.begin())};
  std::set<uint32_t> found(open.begin(), open.end());
  while (!open.empty()) {
    const ComparedCall& call = comparison.calls[open.back()];
    open.pop_back();
    for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
      const std::optional<uint32_t> maker = results.MakerOf(row);
      if (!maker || KindOfCall(comparison.calls[*maker].name()) != kind) continue;
      if (found.insert(*maker).second) open.push_back(*maker);
    }
  }
  return {found.size(), comparison.calls[*found.begin()].name(),
          comparison.calls[*found.rbegin()].name()};
}

std::string HarmlessTwinOf(const Comparison& comparison, const std::string& source, size_t count,
                           bool of_target) {
  constexpr int kMostTries = 8;
  const std::string series = SeriesOf(source);
  int tries = 0;
  for (const ComparedCall& call : comparison.calls) {
    const Text& name = measure::NameOn(call, of_target);
    if (call.paired() || series.empty() || name == source || SeriesOf(name) != series) continue;
    if (!ArrivesWell(comparison, call, of_target)) continue;
    if (++tries > kMostTries) break;
    if (LoneCallsBefore(comparison, name, of_target).count == count) return name;
  }
  return {};
}

std::optional<SkippedCalls> FindSkippedCalls(const Comparison& comparison, const ComparedRow& row) {
  const ComparedCall& call = comparison.calls[row.call];
  if (!row.target || !row.golden || !measure::IsInput(row)) return std::nullopt;
  for (const bool by_target : {true, false}) {
    // The shorter side's value, looked for in the calls of the longer side.
    const Item& wanted = *measure::SideOf(row, by_target);
    const Text& place = measure::NameOn(call, !by_target);
    const size_t lone = CountLone(comparison, place, /*of_target=*/!by_target);
    if (lone == 0 || !IsTelling(wanted)) continue;
    for (const ComparedRow& each : comparison.rows) {
      const Slot<Item>& other = measure::SideOf(each, !by_target);
      if (!other || each.call == row.call || !HasSameContents(*other, wanted)) continue;
      const ComparedCall& found = comparison.calls[each.call];
      const Text& name = measure::NameOn(found, !by_target);
      const bool is_alike = SeriesOf(name) == SeriesOf(place) &&
                            measure::ShortName(*other, name) ==
                                measure::ShortName(*measure::SideOf(row, !by_target), place);
      if (is_alike) return SkippedCalls{by_target, place, name, lone};
    }
  }
  return std::nullopt;
}

ParameterCounts CountParameters(const Comparison& comparison) {
  ParameterCounts counts;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.target || !row.golden || row.target->role != ItemRole::kParameter) continue;
    // A later use in the same step may follow an update.
    if (row.target->name.view().find(".forward.0.") == std::string_view::npos) continue;
    ++counts.all;
    counts.differing += measure::IsBad(row.verdict) ? 1 : 0;
  }
  return counts;
}

namespace {

// Golden's gradient of `value` among those that a backward call got or returned: the one of its
// shape, else of its size (instance norm folds the batch into the channels); or null.
const Item* GradientFor(std::span<const ComparedRow> rows, const Item& value, bool is_incoming) {
  const Item* of_size = nullptr;
  for (const ComparedRow& row : rows) {
    if (!row.golden || !row.golden->is_tensor) continue;
    if (measure::IsInput(*row.golden) != is_incoming) continue;
    if (row.golden->shape == value.shape) return &*row.golden;
    const bool fits = measure::ElementsOf(*row.golden) == measure::ElementsOf(value);
    if (fits && of_size == nullptr) of_size = &*row.golden;
  }
  return of_size;
}

}  // namespace

ForwardCalls::ForwardCalls(const Comparison& comparison) : comparison_(comparison) {
  has_backward_ = std::ranges::any_of(comparison.calls, [](const ComparedCall& call) {
    return KindOfCall(call.target_name) == CallKind::kBackward;
  });
  if (!has_backward_) return;
  results_.reserve(comparison.calls.size());
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.paired() && KindOfCall(call.target_name) == CallKind::kBackward) {
      backward_.emplace(call.target_name, i);
    }
  }
}

void ForwardCalls::Remember(uint32_t call, const CallInputs& inputs) {
  if (!has_backward_) return;
  ForwardResult result{call,
                       inputs.worst,
                       inputs.error,
                       inputs.error,
                       comparison_.calls[call].verdict,
                       inputs.follows_flip};
  not_indexed_.push_back(call);
  for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[call])) {
    const bool is_result = row.golden && row.golden->role == ItemRole::kOutput;
    result.follows_flip = result.follows_flip || IsOfFlip(row);
    if (!is_result || IsOfFlip(row) || measure::IsBad(row.verdict) || !std::isfinite(row.error))
      continue;
    result.error = std::max(result.error, row.error);
  }
  results_.insert_or_assign(comparison_.calls[call].target_name, result);
}

void ForwardCalls::Index() const {
  for (const uint32_t call : not_indexed_) {
    const bool has_gradient = BackwardOf(call) != nullptr;
    for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[call])) {
      if (!row.golden) continue;
      const bool is_read = measure::IsInput(*row.golden) && row.golden->requires_grad == true;
      const bool is_made = has_gradient && row.golden->role == ItemRole::kOutput;
      if (!is_read && !is_made) continue;
      const std::optional<ContentKey> key = KeyOf(*row.golden);
      if (!key) continue;
      if (is_read) readers_[*key].push_back(call);
      if (is_made) made_.insert_or_assign(*key, call);
    }
  }
  not_indexed_.clear();
}

const ForwardResult* ForwardCalls::Of(std::string_view backward) const {
  const auto found = results_.find(ForwardNameOf(backward));
  return found == results_.end() ? nullptr : &found->second;
}

measure::GradientCondition ForwardCalls::ConditionOf(std::string_view backward,
                                                     const measure::InputError* incoming,
                                                     const Item& result) const {
  const ForwardResult* forward = incoming == nullptr ? nullptr : Of(backward);
  if (forward == nullptr) return {};
  std::vector<const Item*> inputs, outputs;
  for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[forward->call])) {
    if (!row.golden || !row.golden->is_tensor) continue;
    (measure::IsInput(*row.golden) ? inputs : outputs).push_back(&*row.golden);
  }
  return measure::ConditionOfGradient(result, backward, *incoming, {inputs, outputs});
}

const ComparedCall* ForwardCalls::BackwardOf(uint32_t forward) const {
  if (backward_.empty()) return nullptr;
  const auto found = backward_.find(BackwardNameOf(comparison_.calls[forward].target_name));
  return found == backward_.end() ? nullptr : &comparison_.calls[found->second];
}

const Item* ForwardCalls::GradientOfMade(const Item& input) const {
  Index();
  const std::optional<ContentKey> key = KeyOf(input);
  const auto maker = key ? made_.find(*key) : made_.end();
  const ComparedCall* backward = maker == made_.end() ? nullptr : BackwardOf(maker->second);
  return backward == nullptr ? nullptr
                             : GradientFor(measure::RowsOf(comparison_, *backward), input, true);
}

bool ForwardCalls::IsMade(const Item& value) const {
  Index();
  const std::optional<ContentKey> key = KeyOf(value);
  return key && made_.contains(*key);
}

std::vector<uint32_t> ForwardCalls::ReadersOf(const Item& value) const {
  Index();
  const std::optional<ContentKey> key = KeyOf(value);
  const auto found = key ? readers_.find(*key) : readers_.end();
  if (found == readers_.end()) return {};
  return {found->second.rbegin(), found->second.rend()};
}

double ForwardCalls::SlopeOf(uint32_t forward, const Item& result, double most) const {
  const ComparedCall* backward = BackwardOf(forward);
  if (backward == nullptr) return 1;
  const auto gradients = measure::RowsOf(comparison_, *backward);
  const Item* incoming = GradientFor(gradients, result, true);
  if (incoming == nullptr) return 1;
  double slope = 1;
  for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[forward])) {
    if (!row.golden || !row.golden->is_tensor || !measure::IsInput(*row.golden)) continue;
    const Item* gradient = GradientFor(gradients, *row.golden, false);
    if (gradient == nullptr) gradient = GradientOfMade(*row.golden);
    if (gradient == nullptr) continue;
    slope =
        std::max(slope, measure::ConditionBySlope(*row.golden, result, *gradient, *incoming, most));
  }
  return slope;
}

double ForwardCalls::GradientSlopeOf(uint32_t forward) const {
  double largest = 0;
  for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[forward])) {
    if (!row.golden || !row.golden->is_tensor) continue;
    const double count = measure::ElementsOf(*row.golden);
    if (measure::IsInput(*row.golden)) {
      largest = std::max(largest, count);
      continue;
    }
    return SlopeOf(forward, *row.golden) * std::sqrt(std::max(largest / count, 1.0));
  }
  return 1;
}

bool ForwardCalls::IsIdentity(std::string_view backward) const {
  const ForwardResult* forward = Of(backward);
  if (forward == nullptr) return false;
  const std::span<const ComparedRow> rows =
      measure::RowsOf(comparison_, comparison_.calls[forward->call]);
  const ComparedRow* input = nullptr;
  const ComparedRow* output = nullptr;
  for (const ComparedRow& row : rows) {
    if (!row.target || !row.golden || !row.golden->is_tensor) continue;
    (measure::IsInput(*row.golden) ? input : output) = &row;
  }
  if (input == nullptr || output == nullptr) return false;
  const auto is_same = [](const Item& a, const Item& b) {
    return a.shape == b.shape && a.dtype == b.dtype && KeyOf(a) == KeyOf(b);
  };
  return is_same(*input->target, *output->target) && is_same(*input->golden, *output->golden);
}

bool ForwardCalls::IsGradientOfANode(const ComparedCall& identity) {
  if (!backward_contents_) {
    backward_contents_.emplace();
    for (const ComparedRow& row : comparison_.rows) {
      if (!row.target || !row.target->is_tensor) continue;
      if (KindOfCall(comparison_.calls[row.call].target_name) != CallKind::kBackward) continue;
      if (const auto key = KeyOf(*row.target)) ++(*backward_contents_)[*key];
    }
  }
  std::unordered_map<ContentKey, size_t, ContentKeyHash> own;
  for (const ComparedRow& row : measure::RowsOf(comparison_, identity)) {
    if (!row.target || !row.target->is_tensor || measure::IsInput(row)) continue;
    const auto key = KeyOf(*row.target);
    if (!key) return false;
    ++own[*key];
  }
  return std::ranges::all_of(own, [&](const auto& each) {
    const auto found = backward_contents_->find(each.first);
    return found != backward_contents_->end() && found->second > each.second;
  });
}

}  // namespace plumbline::verdict
