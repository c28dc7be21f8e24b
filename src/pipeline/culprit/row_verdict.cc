#include "pipeline/culprit/row_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "measure/compared_row.h"
#include "pipeline/culprit/call_arguments.h"

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
  if (difference.error == 0) return Verdict::kWithinNoise;      // equal values of other bits
  const Verdict verdict = measure::VerdictOfRatio(difference.error, expected);
  // Unequal digests are never noise: whoever records them asks for equal bits.
  return !difference.reason.empty() && !measure::IsBad(verdict) ? difference.verdict : verdict;
}

// Of batch_norm and instance_norm, by what golden gives them.
bool UpdatesRunningStatistics(std::string_view name, std::span<const ComparedRow> rows) {
  if (name.find("batch_norm.") == name.npos && name.find("instance_norm.") == name.npos) {
    return false;
  }
  const size_t place = name.starts_with("Functional.") ? 1 : 3;
  const Item* mean = ArgumentOf(rows, name, false, place, "running_mean");
  return mean != nullptr && mean->is_tensor && TakesOwnStatistics(rows, name, false);
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
  return IsArgument(argument, name, 6, "momentum") && UpdatesRunningStatistics(name, rows);
}

bool IsRunningStatistic(const ComparedRow& row, std::string_view name,
                        std::span<const ComparedRow> rows) {
  if (!measure::IsInput(row) || !row.item().is_tensor || !UpdatesRunningStatistics(name, rows)) {
    return false;
  }
  const std::string_view own = measure::ShortName(row.item(), name);
  const size_t first = name.starts_with("Functional.") ? 1 : 3;
  return own == fmt::format("input.{}", first) || own == fmt::format("input.{}", first + 1) ||
         own.ends_with("running_mean") || own.ends_with("running_var");
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
    if (measure::IsInput(row)) continue;
    any = true;
    if (measure::Severity(row.verdict) > measure::Severity(worst)) worst = row.verdict;
  }
  return any ? worst : Verdict::kNotComparable;
}

}  // namespace plumbline::pipeline
