// What two runs do otherwise on purpose: another way to the same results, a narrower type.

#ifndef PLUMBLINE_REPORT_OTHER_WAYS_H_
#define PLUMBLINE_REPORT_OTHER_WAYS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::report {

// ComparedCall::unmatched_reason of calls without counterpart that are judged where the sides meet,
// the reason of their rows. The first one's unmatched_detail says which they are.
inline constexpr std::string_view kOtherWay = "other-way";

struct OtherWays {
  uint64_t target = 0, golden = 0;  // calls; they count among the unmatched ones
  std::string text;                 // "720 calls of the optimizer"; empty: none
};
OtherWays OtherWaysOf(const Comparison& comparison);

// Code of the note on the row where the target begins to compute in a narrower type.
inline constexpr std::string_view kNarrowed = "narrowed";
// The text of that note: "bfloat16 from Functional.conv2d.0.forward on (218 calls)". Empty: none.
std::string NarrowedText(const Comparison& comparison);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_OTHER_WAYS_H_
