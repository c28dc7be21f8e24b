#include "pipeline/culprit/detection_limit.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/value_source.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// An error of all of a value: of what rounding alone is, nothing is told.
constexpr double kAll = 1;

bool IsGradient(const Comparison& comparison, const ComparedRow& row) {
  return row.item().role == ItemRole::kParameterGrad ||
         KindOfCall(comparison.calls[row.call].target_name) == CallKind::kBackward;
}

// What the verdict of one result allowed.
void Add(const Comparison& comparison, const ComparedRow& row, DetectionLimit& limit) {
  const double allowed = measure::kNoiseFactor * row.expected;
  if (!(allowed < kAll)) {  // also NaN
    ++limit.roundings;
    return;
  }
  double& of_kind = IsGradient(comparison, row) ? limit.gradient : limit.result;
  of_kind = std::max(of_kind, allowed);
}

// Whether an optimizer's call may write into it: a parameter, or what the next one makes of it.
bool IsTrained(const Item& item) {
  if (!measure::IsInput(item) || !item.is_tensor) return false;
  return item.requires_grad ? *item.requires_grad : item.role == ItemRole::kParameter;
}

// Whether gradients were recorded, and behind the last of them no call that changes in place what
// got one: an optimizer that makes no recorded calls, or a level without calls.
bool LacksLastUpdate(const Comparison& comparison) {
  size_t end = 0;  // behind the last gradient
  for (size_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.paired() && KindOfCall(call.target_name) == CallKind::kBackward) end = i + 1;
  }
  if (end == 0) return false;
  std::unordered_set<ContentKey, ContentKeyHash> trained;
  for (size_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    const bool is_update = i >= end && WritesInPlace(call.target_name);
    if (!call.paired() || (i >= end && !is_update)) continue;
    for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
      const std::optional<ContentKey> key = row.target ? KeyOf(*row.target) : std::nullopt;
      if (!key || !measure::IsInput(row)) continue;
      if (is_update && trained.contains(*key)) return false;
      if (!is_update && IsTrained(*row.target)) trained.insert(*key);
    }
  }
  return true;
}

}  // namespace

DetectionLimit LimitOf(const Comparison& comparison) {
  DetectionLimit limit;
  limit.lacks_last_update = LacksLastUpdate(comparison);
  if (comparison.mode == CompareMode::kDigest) return limit;  // equal bits, or told
  for (const ComparedRow& row : comparison.rows) {
    if (!measure::HasTensors(row) || measure::IsInput(row) || !measure::IsGood(row.verdict)) {
      continue;
    }
    Add(comparison, row, limit);
  }
  return limit;
}

}  // namespace plumbline::pipeline
