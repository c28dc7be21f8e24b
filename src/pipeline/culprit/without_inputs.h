// What may be rounding where neither side recorded what calls read (`data_mode`).

#ifndef PLUMBLINE_PIPELINE_CULPRIT_WITHOUT_INPUTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_WITHOUT_INPUTS_H_

#include <cstdint>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Wrong rows of a comparison without inputs of forward and backward calls that a gradient of
// nothing but rounding explains, in order: gradients that are, on both sides, no larger than the
// rounding of others of their module or backward call; and behind a step results of forward calls
// that are off by what was added to all of them along some axis (with tensors), while the next
// softmax or normalisation, which loses it, agrees. It may be a fault as well: nothing proves
// either. Requires: verdicts of all rows.
std::vector<uint32_t> ResultsWithoutProof(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_WITHOUT_INPUTS_H_
