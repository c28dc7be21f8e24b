// Parameters that an optimizer moved otherwise, where no gradient was recorded that could tell why.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_UNSEEN_UPDATE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_UNSEEN_UPDATE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Of what differs as much as rounding may have made it, where nothing recorded proves that it did.
inline constexpr std::string_view kUnproven = "unproven";
// Counts such rows among the missing values, and warns of the first of them. Once per judgement.
void ReportUnproven(Comparison& comparison);

// The rows in which forward pairs read a vector among the parameters that differs behind a step,
// agreed before it, and moved no further than three times golden's largest step (as far as elements
// are recorded), while nothing comes of it: every result that follows from it is read again, and
// ends where both sides agree. So does a bias of keys before a softmax, or one before a batch norm,
// whose gradient is rounding alone; which of the two it is, rounding or a fault without effect, is
// not told. Empty where gradients were recorded with their elements. Requires: verdicts of all
// rows.
std::vector<uint32_t> UpdatesWithoutEffect(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_UNSEEN_UPDATE_H_
