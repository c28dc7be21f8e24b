#include "pipeline/culprit/errors_before.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kMostCalls = 16;       // that are followed back
constexpr double kMostCondition = 1e3;  // of all of them

// A value that is looked for before a call, and how much of its error arrives.
struct Step {
  ContentKey key;
  uint32_t call = 0;
  double condition = 1;
};

// How a call of the target magnifies errors of what it reads.
double ConditionOf(const Comparison& comparison, const ComparedRow& result) {
  const ComparedCall& call = comparison.calls[result.call];
  std::vector<measure::InputError> read;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (!row.target || !row.target->is_tensor || !measure::IsInput(*row.target)) continue;
    read.push_back({&*row.target, 1});
  }
  return measure::PropagationTo(*result.target, call.target_name, read).from_inputs;
}

}  // namespace

void ErrorsBefore::Prepare() {
  is_prepared_ = true;
  for (uint32_t i = 0; i < comparison_.rows.size(); ++i) {
    const ComparedRow& row = comparison_.rows[i];
    if (!row.target || !row.target->is_tensor || !IsTelling(*row.target)) continue;
    if (const auto key = KeyOf(*row.target)) rows_[*key].push_back(i);
  }
}

bool ErrorsBefore::FindAgreeing(const std::vector<uint32_t>& rows, uint32_t call,
                                double& error) const {
  bool any = false;
  for (const uint32_t index : rows) {
    const ComparedRow& row = comparison_.rows[index];
    if (row.call > call || (row.call == call && !measure::IsInput(row))) continue;
    if (!row.target || !row.golden || !measure::IsGood(row.verdict)) continue;
    if (std::isfinite(row.error)) error = std::max(error, row.error);
    any = true;
  }
  return any;
}

double ErrorsBefore::Through(const ComparedRow& result) {
  if (!result.target || !result.target->is_tensor) return 0;
  double largest = 0;
  for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[result.call])) {
    if (!row.target || !row.target->is_tensor || !measure::IsInput(*row.target)) continue;
    const bool is_good = measure::IsGood(row.verdict) && std::isfinite(row.error);
    largest = std::max(largest, is_good ? row.error : LeadingTo(row));
  }
  return largest * std::min(ConditionOf(comparison_, result), kMostCondition);
}

double ErrorsBefore::LeadingTo(const ComparedRow& row) {
  const std::optional<ContentKey> first = row.target ? KeyOf(*row.target) : std::nullopt;
  if (!first) return 0;
  if (!is_prepared_) Prepare();
  std::vector<Step> steps{{*first, row.call, 1}};
  std::unordered_set<uint32_t> met;
  double largest = 0;
  for (size_t next = 0; next < steps.size() && met.size() < kMostCalls; ++next) {
    const Step step = steps[next];
    const auto found = rows_.find(step.key);
    double error = 0;
    if (found == rows_.end()) continue;
    if (FindAgreeing(found->second, step.call, error)) {
      largest = std::max(largest, step.condition * error);
      continue;
    }
    const auto maker =
        std::find_if(found->second.rbegin(), found->second.rend(), [&](const uint32_t index) {
          const ComparedRow& made = comparison_.rows[index];
          return made.call < step.call && !measure::IsInput(*made.target);
        });
    if (maker == found->second.rend()) continue;
    const ComparedRow& made = comparison_.rows[*maker];
    if (!met.insert(made.call).second) continue;
    const double condition =
        std::min(step.condition * ConditionOf(comparison_, made), kMostCondition);
    for (const ComparedRow& read : measure::RowsOf(comparison_, comparison_.calls[made.call])) {
      if (!read.target || !read.target->is_tensor || !measure::IsInput(*read.target)) continue;
      if (const auto key = KeyOf(*read.target)) steps.push_back({*key, made.call, condition});
    }
  }
  return largest;
}

}  // namespace plumbline::pipeline
