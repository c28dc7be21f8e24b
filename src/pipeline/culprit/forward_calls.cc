#include "pipeline/culprit/forward_calls.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>
#include <vector>

#include "measure/compared_row.h"
#include "measure/verdict.h"
#include "pipeline/culprit/call_inputs.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/discrete_flip.h"
#include "record/value.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
