// What a user may ask a comparison to fail on: "suspicious", "broken", "unmatched", "any".

#ifndef PLUMBLINE_REPORT_FAIL_CONDITIONS_H_
#define PLUMBLINE_REPORT_FAIL_CONDITIONS_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::report {

inline constexpr std::array<std::string_view, 4> kFailConditions = {"suspicious", "broken",
                                                                    "unmatched", "any"};

// Which of them hold, in the order of kFailConditions.
using MetConditions = std::array<bool, kFailConditions.size()>;

// Whether one of `asked` is met. kInvalidArgument for a name that is none of kFailConditions.
Result<bool> MeetsAny(const MetConditions& met, const std::vector<std::string>& asked);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_FAIL_CONDITIONS_H_
