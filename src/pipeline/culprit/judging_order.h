// In which order the calls of a comparison came to be.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_JUDGING_ORDER_H_
#define PLUMBLINE_PIPELINE_CULPRIT_JUDGING_ORDER_H_

#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Indices into Comparison::calls, each once. Recorded order, but for gradients of parameters, which
// are listed early and computed last. Saved values: gradients stand behind the values they belong
// to; they arrive after all values, those of later values first.
std::vector<uint32_t> JudgingOrder(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_JUDGING_ORDER_H_
