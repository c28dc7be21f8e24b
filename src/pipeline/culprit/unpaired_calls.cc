#include "pipeline/culprit/unpaired_calls.h"

#include <algorithm>

#include "match/name_match.h"
#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"

namespace plumbline::pipeline {
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

const ComparedCall* GoldenNamesakeOf(const Comparison& comparison, const ComparedCall& call) {
  const auto found = std::ranges::find_if(comparison.calls, [&](const ComparedCall& each) {
    return each.target_name.empty() && each.golden_name == call.target_name;
  });
  return found == comparison.calls.end() ? nullptr : &*found;
}

}  // namespace plumbline::pipeline
