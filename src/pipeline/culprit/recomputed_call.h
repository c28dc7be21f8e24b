// Whether a call of the target did right, by computing its result again from what it read.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_RECOMPUTED_CALL_H_
#define PLUMBLINE_PIPELINE_CULPRIT_RECOMPUTED_CALL_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether the target's result in `row` is, element by element, what its call makes of the target's
// inputs: then what differs follows from what the inputs differ by, however much that is (the sign
// of rounding). Of forward calls that work element by element (measure/elementwise.h), with all
// tensors recorded and of at most 2^20 elements; false else.
bool FollowsFromInputs(const Comparison& comparison, const ComparedRow& row);

// The same of golden's result and inputs.
bool GoldenFollowsFromInputs(const Comparison& comparison, const ComparedRow& row);

// Whether the target's result in `row` is not what its call makes of the target's inputs, by more
// than rounding, while golden's is what it makes of golden's: the call is wrong, however much its
// inputs differ. Of forward calls that work element by element: by the four statistics, as far as
// those of the inputs limit them, and with tensors recorded by every element or, `of_sample`, by
// the first of large tensors. False where that cannot be told.
bool ContradictsInputs(const Comparison& comparison, const ComparedRow& row, bool of_sample);

// The call that wrote into what `row` reads, where it shows no result itself: the last `x[mask] =
// number` before it on a tensor of that shape, if the rows of that call are good. Null: none.
const ComparedCall* MaskedWriteBefore(const Comparison& comparison, const ComparedRow& row);

// Whether the target's side of `row` is what MaskedWriteBefore() makes of its inputs; under the
// same conditions.
bool FollowsFromWrite(const Comparison& comparison, const ComparedCall& write,
                      const ComparedRow& row);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_RECOMPUTED_CALL_H_
