#include "pipeline/culprit/exchanged_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "pipeline/culprit/cause_candidates.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/walk_state.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

using measure::Difference;
using measure::HasTensors;

using Pairs = std::vector<std::pair<const ComparedRow*, const ComparedRow*>>;
using Fits = std::function<bool(const Item& target, const Item& golden)>;

// Each row with the one whose golden item is its target's; empty where one finds none.
Pairs PairCrosswise(const std::vector<const ComparedRow*>& rows, const Fits& fits) {
  Pairs pairs;
  std::vector<const ComparedRow*> left = rows;
  for (const ComparedRow* row : rows) {
    const auto found = std::ranges::find_if(left, [&](const ComparedRow* each) {
      return each != row && row->target->shape == each->golden->shape &&
             row->target->dtype == each->golden->dtype && fits(*row->target, *each->golden);
    });
    if (found == left.end()) return {};
    pairs.emplace_back(row, *found);
    left.erase(found);
  }
  return pairs;
}

// An error that is noise without a reason from outside.
double LargestNoiseOf(const WalkState& state, const ComparedRow& row) {
  return measure::kNoiseFactor *
         std::max(state.RoundoffOf(row), state.noise.AtMost(state.noise.level()));
}

bool IsWithin(const Difference& difference, double largest) {
  if (difference.kind == Difference::Kind::kEqual) return true;
  return difference.kind == Difference::Kind::kNumeric && difference.error <= largest;
}

// The same of two that may be zeros on both sides, as what a recurrence begins with.
bool Agree(const Difference& difference, double largest) {
  return IsWithin(difference, largest) || difference.reason == "zero-both";
}

}  // namespace

ExchangedOperands::ExchangedOperands(const measure::PairContext& context)
    : context_{context.mode == CompareMode::kTensor ? CompareMode::kStatistics : context.mode,
               context.reductions_differ, context.digest_bases_differ} {}

void ExchangedOperands::Enter(const WalkState& state, const ComparedCall& call) {
  errors_.clear();
  if (state.comparison.of_saves || !call.paired()) return;
  if (KindOfCall(call.target_name) == CallKind::kBackward) {
    const bool follows = forward_calls_.contains(ForwardNameOf(call.target_name));
    if (!follows || !Pair(state, call, ItemRole::kOutput)) errors_.clear();
    return;
  }
  if (Pair(state, call, ItemRole::kInput) && ResultsAgree(state, call)) {
    forward_calls_.insert(call.target_name);
  } else {
    errors_.clear();
  }
}

bool ExchangedOperands::Pair(const WalkState& state, const ComparedCall& call, ItemRole role) {
  std::vector<const ComparedRow*> differing;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, call)) {
    if (!HasTensors(row) || row.target->role != role) continue;
    if (!IsWithin(state.DifferenceOf(row), LargestNoiseOf(state, row))) differing.push_back(&row);
  }
  if (differing.size() < 2) return false;
  const double largest = LargestNoiseOf(state, *differing.front());
  const auto difference = [&](const Item& target, const Item& golden) {
    return measure::DifferenceOf(target, golden, context_, nullptr);
  };
  const Pairs pairs = PairCrosswise(differing, [&](const Item& target, const Item& golden) {
    return Agree(difference(target, golden), largest);
  });
  for (const auto& [row, partner] : pairs) {
    const double error = difference(*row->target, *partner->golden).error;
    errors_[state.IndexOf(*row)] = std::isfinite(error) ? error : 0;
  }
  return !pairs.empty();
}

bool ExchangedOperands::ResultsAgree(const WalkState& state, const ComparedCall& call) const {
  double error = 0;
  for (const auto& [row, each] : errors_) error = std::max(error, each);
  // Equal statistics may be those of another order of elements: matrices multiplied the other way
  // round give the transposed product. What has one element for each of an operand's does not.
  const bool is_seen = state.comparison.mode != CompareMode::kStatistics;
  if (!is_seen && measure::ClassOfCall(call.target_name) == measure::CallClass::kProduct) {
    return false;
  }
  bool any = false;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, call)) {
    if (!row.target || row.target->role != ItemRole::kOutput) continue;
    const double largest = std::max(LargestNoiseOf(state, row), measure::kNoiseFactor * error);
    if (!HasTensors(row) || !Agree(state.DifferenceOf(row), largest)) return false;
    const auto has_its_shape = [&](const auto& exchanged) {
      return state.comparison.rows[exchanged.first].target->shape == row.target->shape;
    };
    if (!is_seen && !std::ranges::all_of(errors_, has_its_shape)) return false;
    any = true;
  }
  return any;
}

bool ExchangedOperands::Take(const WalkState& state, ComparedRow& row) const {
  const auto found = errors_.find(state.IndexOf(row));
  if (found == errors_.end()) return false;
  row.verdict = Verdict::kWithinNoise;
  row.reason = kReason;
  row.error = found->second;
  row.expected = LargestNoiseOf(state, row) / measure::kNoiseFactor;
  return true;
}

std::optional<measure::Cause> ExchangeCause(const Comparison& comparison, const ComparedRow& row) {
  if (!HasTensors(row) || row.target->role != ItemRole::kInput) return std::nullopt;
  const ComparedCall& call = comparison.calls[row.call];
  std::vector<const ComparedRow*> differing;
  for (const ComparedRow& each : measure::RowsOf(comparison, call)) {
    if (!HasTensors(each) || each.target->role != ItemRole::kInput) continue;
    if (!HasSameContents(*each.target, *each.golden)) differing.push_back(&each);
  }
  for (const auto& [own, partner] : PairCrosswise(differing, HasSameContents)) {
    if (own != &row) continue;
    return measure::Cause{
        "operands-exchanged",
        fmt::format("the target takes as {} what golden takes as {}; the inputs are the same in "
                    "another order",
                    measure::ShortName(*row.target, call.target_name),
                    measure::ShortName(*partner->golden, call.golden_name)),
        comparison.mode == CompareMode::kStatistics ? measure::CauseConfidence::kMedium
                                                    : measure::CauseConfidence::kHigh};
  }
  return std::nullopt;
}

}  // namespace plumbline::pipeline
