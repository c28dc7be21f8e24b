// Calls that reach the same values in another form: where both sides meet again.

#ifndef PLUMBLINE_VERDICT_MEETING_POINTS_H_
#define PLUMBLINE_VERDICT_MEETING_POINTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::verdict {

// What two runs do otherwise on purpose: another way to the same results, a narrower type.

// What names begin with that stand for an optimizer's whole step of one parameter
// (python/bindings/optimizer_steps.h), and the parent of the calls inside.
inline constexpr std::string_view kOptimizerStep = "Optimizer.";
inline constexpr std::string_view kInsideOptimizer = "optimizer";

// ComparedCall::unmatched_reason of calls without counterpart that are judged where the sides meet,
// the reason of their rows. The first one's unmatched_detail says which they are.
inline constexpr std::string_view kEquivalent = "other-way";

struct EquivalentCalls {
  uint64_t target = 0, golden = 0;  // calls; they count among the unmatched ones
  std::string text;                 // "720 calls of the optimizer"; empty: none
};
EquivalentCalls EquivalentCallsOf(const Comparison& comparison);

// Code of the note on the row where the target begins to compute in a narrower type.
inline constexpr std::string_view kNarrowed = "narrowed";
// The text of that note: "bfloat16 from Functional.conv2d.0.forward on (218 calls)". Empty: none.
std::string NarrowedText(const Comparison& comparison);

// What calls without counterpart leave behind.

// Whether all floating-point results of the target's own forward calls are read by a later call:
// what ends with them is compared with nothing. A result that no loss depends on (it requires a
// gradient and got none, although calls behind its own have theirs) may stay unread, as the state
// that a loop leaves after its last round; but where golden's own calls leave results of that
// shape, it must agree with one of them. Masks and indices are often read through views that no
// recorder sees, and what is made of them is a result itself. `noise`: largest relative error that
// counts as noise.
bool AllLoneResultsAreRead(const Comparison& comparison, double noise);

// Calls of one side alone that are judged where the sides meet again: what leaves them stands on
// both sides and agrees (docs/design/verdict.md, "The same results by another way").

// Marks the calls without counterpart whose every result is compared at such a point
// (kEquivalent). Where a call is named, a row is wrong or a gradient is cut off, none is.
// Returns the first of them, where a text about all of them may stand; null where there is none.
// Requires: verdicts of all rows and calls.
ComparedCall* MarkEquivalentCalls(const Run& target, const Run& golden, Comparison& comparison);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_MEETING_POINTS_H_
