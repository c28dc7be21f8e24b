#include "pipeline/culprit/row_verdict.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "measure/compared_row.h"

namespace plumbline::pipeline {
namespace {

using measure::Difference;

Verdict VerdictOf(const Difference& difference, double expected) {
  switch (difference.kind) {
    case Difference::Kind::kEqual:
      return Verdict::kSame;
    case Difference::Kind::kArgument:
    case Difference::Kind::kDecided:
      return difference.verdict;
    case Difference::Kind::kNumeric:
      break;
  }
  if (std::isnan(difference.error)) return difference.verdict;  // digests: size unknown
  const Verdict verdict = measure::VerdictOfRatio(difference.error, expected);
  // Unequal digests are never noise: whoever records them asks for equal bits.
  return !difference.reason.empty() && !measure::IsBad(verdict) ? difference.verdict : verdict;
}

// The item of one of these names that the call is given, on the golden side; null if none is there.
const Item* Given(std::span<const ComparedRow> rows, std::string_view name,
                  std::initializer_list<std::string_view> wanted) {
  for (const ComparedRow& row : rows) {
    if (!row.golden || !measure::IsInput(row)) continue;
    const std::string_view own = measure::ShortName(row.item(), name);
    const bool fits = std::any_of(wanted.begin(), wanted.end(),
                                  [&](std::string_view each) { return own.ends_with(each); });
    if (fits) return &*row.golden;
  }
  return nullptr;
}

// Of batch_norm and instance_norm, whose flag and momentum have one place in all their forms.
bool UpdatesRunningStatistics(std::string_view name, std::span<const ComparedRow> rows) {
  if (name.find("batch_norm.") == name.npos && name.find("instance_norm.") == name.npos) {
    return false;
  }
  const std::string_view place = name.starts_with("Functional.") ? "input.1" : "input.3";
  const Item* mean = Given(rows, name, {place, "running_mean"});
  const Item* flag = Given(rows, name, {"input.5", "training", "use_input_stats"});
  const bool* training = flag == nullptr ? nullptr : std::get_if<bool>(&flag->statistics[0]);
  return mean != nullptr && mean->is_tensor && training != nullptr && *training;
}

}  // namespace

bool ReadsWrongTensor(std::span<const ComparedRow> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const ComparedRow& row) {
    return measure::IsInput(row) && row.item().is_tensor && measure::IsBad(row.verdict);
  });
}

bool MayActUnseen(const ComparedRow& argument, std::string_view name,
                  std::span<const ComparedRow> rows) {
  const bool returns = std::any_of(rows.begin(), rows.end(), [](const ComparedRow& row) {
    return !measure::IsInput(row) && row.item().dtype;
  });
  if (!returns) return true;
  const std::string_view own = measure::ShortName(argument.item(), name);
  const bool is_momentum = own.ends_with("input.6") || own.ends_with("momentum");
  return is_momentum && UpdatesRunningStatistics(name, rows);
}

void ApplyDifference(const Difference& difference, double expected, ComparedRow& row) {
  row.expected = expected;
  row.error = difference.error;
  row.reason = std::string(difference.reason);
  row.verdict = VerdictOf(difference, expected);
  if (difference.doubt.empty() || measure::IsBad(row.verdict)) return;
  row.verdict = Verdict::kNotComparable;
  row.reason = std::string(difference.doubt);
}

Verdict WorstOfResults(std::span<const ComparedRow> rows) {
  Verdict worst = Verdict::kSame;
  bool any = false;
  for (const ComparedRow& row : rows) {
    const ItemRole role = row.target->role;
    if (role == ItemRole::kInput || role == ItemRole::kParameter) continue;
    any = true;
    if (measure::Severity(row.verdict) > measure::Severity(worst)) worst = row.verdict;
  }
  return any ? worst : Verdict::kNotComparable;
}

}  // namespace plumbline::pipeline
