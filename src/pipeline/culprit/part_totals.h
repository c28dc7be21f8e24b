// What the parts of a batch come to together, where two runs cut it otherwise.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_PART_TOTALS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_PART_TOTALS_H_

#include <optional>
#include <span>

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/part_twins.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The first call whose results, those of all parts laid one behind the other, are further from
// golden's than `most` relative to them, as far as maximum, minimum, mean and norm tell. Single
// numbers must add up or average to golden's. Of the parts the first is named. `weight`, what
// FindPartWeight() (part_weights) found, where nothing before it differs.
std::optional<CulpritEvent> FindPartTotal(const Comparison& comparison,
                                          std::span<const Twins> twins, double most,
                                          const std::optional<CulpritEvent>& weight);

// Whether a call beside the parts reads a tensor that none of them reads or returns, as an
// optimizer reads the gradients of all parts added up. Without one their sum is not compared.
bool IsSumRead(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_PART_TOTALS_H_
