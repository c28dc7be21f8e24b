// What a user may ask a comparison to fail on: three gates, "wrong", "unjudged" and "any", and the
// words about rows and calls that they are made of.

#ifndef PLUMBLINE_REPORT_FAIL_CONDITIONS_H_
#define PLUMBLINE_REPORT_FAIL_CONDITIONS_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::report {

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

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_FAIL_CONDITIONS_H_
