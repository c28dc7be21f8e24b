// Whether calls without counterpart are another way to the same results (docs/design/verdict.md,
// "Another way to the same values").

#ifndef PLUMBLINE_PIPELINE_CULPRIT_OTHER_WAY_H_
#define PLUMBLINE_PIPELINE_CULPRIT_OTHER_WAY_H_

#include <set>
#include <vector>

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/unpaired_calls.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The pass in which the event's wrong value shows.
CallKind DirectionOf(const Comparison& comparison, const CulpritEvent& event);

// The directions (forward, backward) in which the two sides, after `events` made them part, meet
// again: every event there is a value that one side takes from a call which the other has not,
// every wrong result is read by a paired call or by one whose own result arrives where both sides
// agree, and after the last of them calls agree up to the end of the pass. Or, where some event is
// a value that both sides had, in another place of a formula: every wrong result comes to values
// that agree (WrongResults). `noise`: largest relative error that counts as noise. Requires:
// verdicts of all rows and calls, and what is good of `unpaired`.
std::set<CallKind> DirectionsThatMeet(const Comparison& comparison,
                                      const std::vector<CulpritEvent>& events,
                                      const UnpairedCalls& unpaired, double noise);

// Whether calls whose counterparts have other forms (`forms`) are another way to the same values:
// nothing that pairs is wrong, some pair behind the last of them computes what agrees, every result
// of the target's own calls is read, and every tensor gets the same gradient. Requires: verdicts of
// all rows and calls.
bool FormsMeet(const Comparison& comparison, const std::vector<CulpritEvent>& forms, double noise);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_OTHER_WAY_H_
