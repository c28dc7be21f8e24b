// Whether a normalisation of the target did right, by computing it again from what it read.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_RECOMPUTED_NORM_H_
#define PLUMBLINE_PIPELINE_CULPRIT_RECOMPUTED_NORM_H_

#include <cstdint>
#include <optional>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether the target's result in `row` is what layer, group, instance or (in training) batch norm
// makes of the target's inputs, or the gradient of what the forward call `forward` read: then what
// differs follows from what the inputs differ by, which grows by the mean over the deviation of a
// group of elements. With all tensors recorded and of at most 2^20 elements; false else.
bool FollowsFromNormalised(const Comparison& comparison, const ComparedRow& row,
                           std::optional<uint32_t> forward);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_RECOMPUTED_NORM_H_
