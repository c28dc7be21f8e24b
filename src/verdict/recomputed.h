// Calls computed again from their recorded inputs, with errors of the recorded precision.

#ifndef PLUMBLINE_VERDICT_RECOMPUTED_H_
#define PLUMBLINE_VERDICT_RECOMPUTED_H_

#include <cstdint>
#include <optional>

#include "plumbline/compare.h"

namespace plumbline::verdict {

// Whether a call of the target did right, by computing its result again from what it read.

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

// Whether a normalisation of the target did right, by computing it again from what it read.

// Whether the target's result in `row` is what layer, group, instance or (in training) batch norm
// makes of the target's inputs, or the gradient of what the forward call `forward` read: then what
// differs follows from what the inputs differ by, which grows by the mean over the deviation of a
// group of elements. With all tensors recorded and of at most 2^20 elements; false else.
bool FollowsFromNormalised(const Comparison& comparison, const ComparedRow& row,
                           std::optional<uint32_t> forward);

// Running means, which a normalisation in training writes into what it reads.

// The relative error that a running mean which `row` reads may have: an earlier call of that
// function made it, on both sides, of the one that it read and of the mean of its input, whose
// errors it keeps by their share. Nothing where `row` is none, or its mean is not what such a call
// makes.
std::optional<double> ExplainedAsRunningMean(const Comparison& comparison, const ComparedRow& row);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_RECOMPUTED_H_
