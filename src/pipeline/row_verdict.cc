#include "pipeline/row_verdict.h"

#include <cmath>
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

}  // namespace

void ApplyDifference(const Difference& difference, double expected, ComparedRow& row) {
  row.expected = expected;
  row.error = difference.error;
  row.reason = std::string(difference.reason);
  row.verdict = VerdictOf(difference, expected);
  if (difference.doubt.empty() || measure::IsBad(row.verdict)) return;
  row.verdict = Verdict::kNotComparable;
  row.reason = std::string(difference.doubt);
}

}  // namespace plumbline::pipeline
