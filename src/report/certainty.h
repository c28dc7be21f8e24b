// How far an answer can be trusted (the recordings decide, not the comparison), what a user may let
// it fail on, and reason codes in words.

#ifndef PLUMBLINE_REPORT_CERTAINTY_H_
#define PLUMBLINE_REPORT_CERTAINTY_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "measure/stats_metrics.h"
#include "plumbline/compare.h"
#include "plumbline/result.h"

namespace plumbline::report {

struct Certainty {
  // "high": every element was compared; "medium": less than that; "low": equal proves little.
  std::string_view level;
  std::string text;  // what was compared, and what goes unseen
};
// `digests`: of mode kDigest.
Certainty CertaintyOf(CompareMode mode, measure::DigestKind digests, const DetectionLimit& limit);
Certainty CertaintyOf(const Comparison& comparison);

// "  certainty: ..." and a line end; empty where every element was compared.
std::string CertaintyLine(const Certainty& certainty);

// "differences of a result below 0.01 % and of a gradient below 2 % cannot be told from noise
// here".
std::string LimitText(const DetectionLimit& limit);
// "  limit: ..." and a line end, below an answer without a wrong call.
std::string LimitLine(const DetectionLimit& limit);

// What a user may ask a comparison to fail on: three gates, "wrong", "unjudged" and "any", and the
// words about rows and calls that they are made of.

// Which of them hold. "any" holds where one of the others does.
struct MetConditions {
  bool wrong = false;       // a call, or a value, is named
  bool unjudged = false;    // something could not be judged
  bool suspicious = false;  // a row, or what is named, is suspicious or worse
  bool broken = false;
  bool unmatched = false;  // unjudged, or without counterpart, be it another way to the same values
  bool differs = false;    // anything else that differs; no word of its own
};

inline constexpr std::array<std::string_view, 6> kFailConditions = {
    "wrong", "unjudged", "any", "suspicious", "broken", "unmatched"};

// Adds a condition by its name; another name adds nothing.
void AddCondition(std::string_view name, MetConditions& met);

// Whether one of `asked` is met. kInvalidArgument for a name that is none of kFailConditions.
Result<bool> MeetsAny(const MetConditions& met, const std::vector<std::string>& asked);

// What the reason codes of rows that cannot be compared mean, in words.

// "golden has no such call" for "no-golden"; whether the sides agree is said where they do. Empty
// for codes that need no words. docs/design/verdict.md lists all codes.
std::string_view ReasonText(std::string_view code);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_CERTAINTY_H_
