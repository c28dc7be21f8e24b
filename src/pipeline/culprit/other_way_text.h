// Calls that are another way to the same results, in words.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_OTHER_WAY_TEXT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_OTHER_WAY_TEXT_H_

#include <string>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// "720 calls of the optimizer", "2 calls of the target (Functional.f) for 14 of golden (Torch.g,
// Torch.h)". Which calls are an optimizer's is told by their stacks. Empty where no call is
// marked so (report::kOtherWay).
std::string OtherWayText(const Run& target, const Run& golden, const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_OTHER_WAY_TEXT_H_
