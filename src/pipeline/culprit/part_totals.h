// What the parts of a batch come to together, where two runs cut it otherwise.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_PART_TOTALS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_PART_TOTALS_H_

#include <optional>

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/other_batch.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// A part whose loss counts for more or less than in golden: the gradients that enter the losses are
// neither equal in all parts and golden (sums over samples) nor add up to golden's (means). They
// are single numbers that rounding elsewhere does not touch. The call named is the one that weights
// the loss of such a part. `is_wrong`: the gradients of all parts are known to add up to something
// else; then losses that average to golden's are means and may not all count as much as golden's.
std::optional<CulpritEvent> FindPartWeight(const Comparison& comparison, const OtherBatch& batch,
                                           bool is_wrong);

// The first call whose results, those of all parts laid one behind the other, are further from
// golden's than `most` relative to them, as far as maximum, minimum, mean and norm tell. Single
// numbers must add up or average to golden's. Of the parts the first is named. `weight`, what
// FindPartWeight() found, where nothing before it differs.
std::optional<CulpritEvent> FindPartTotal(const Comparison& comparison, const OtherBatch& batch,
                                          double most, const std::optional<CulpritEvent>& weight);

// Whether a call beside the parts reads a tensor that none of them reads or returns, as an
// optimizer reads the gradients of all parts added up. Without one their sum is not compared.
bool IsSumRead(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_PART_TOTALS_H_
