// Calls of one side alone that are judged where the sides meet again: what leaves them stands on
// both sides and agrees (docs/design/verdict.md, "The same results by another way").

#ifndef PLUMBLINE_PIPELINE_CULPRIT_MEETING_POINTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_MEETING_POINTS_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Marks the calls without counterpart whose every result is compared at such a point
// (report::kOtherWay). Where a call is named, a row is wrong or a gradient is cut off, none is.
// Requires: verdicts of all rows and calls.
void MarkOtherWays(const Run& target, const Run& golden, Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_MEETING_POINTS_H_
