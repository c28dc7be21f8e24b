// How much the loss of each part of a batch counts, where two runs cut it otherwise.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_PART_WEIGHTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_PART_WEIGHTS_H_

#include <optional>
#include <span>

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/other_batch.h"
#include "pipeline/culprit/part_twins.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// A part whose loss counts for more or less than in golden: the gradients that enter the losses are
// neither equal in all parts and golden (sums over samples) nor add up to golden's (means). They
// are single numbers that rounding elsewhere does not touch. The call named is the one that weights
// the loss of such a part. `is_wrong`: the gradients of all parts are known to add up to something
// else; then losses that average to golden's are means and may not all count as much as golden's.
std::optional<CulpritEvent> FindPartWeight(const Comparison& comparison, const OtherBatch& batch,
                                           std::span<const Twins> twins, bool is_wrong);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_PART_WEIGHTS_H_
