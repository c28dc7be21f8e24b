// Differences and results of rows as the newest upstream release spells them
// (docs/reference/compare-newest.md).

#ifndef PLUMBLINE_REPORT_NEWEST_VERDICT_H_
#define PLUMBLINE_REPORT_NEWEST_VERDICT_H_

#include <optional>
#include <string>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::report {

// Texts of one statistic's two columns, and the relative error as a ratio (infinite for "inf")
// where it is a number.
struct NewestDifference {
  std::string difference, relative;
  std::optional<double> ratio;
};
NewestDifference NewestDifferenceOf(const Recorded& target, const Recorded& golden);

// "NPU max" and the others as that release writes them.
std::string NewestStatisticText(const Recorded& recorded);

enum class NewestLevel : uint8_t { kPass, kWarning, kError };
struct NewestResult {
  NewestLevel level = NewestLevel::kPass;
  std::vector<std::string> messages;  // "error: [shape] The shapes differ."
};
// One result per row of the call. Rows that upstream passes although one side has no counterpart,
// no readable data, NaN, infinities, no elements or nothing but zeros are warnings or errors.
std::vector<NewestResult> NewestResultsOf(const Comparison& comparison, const ComparedCall& call);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_NEWEST_VERDICT_H_
