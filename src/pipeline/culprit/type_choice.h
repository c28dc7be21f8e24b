// Whether the runs compute in other types on purpose.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_TYPE_CHOICE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_TYPE_CHOICE_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

struct TypeChoice {
  // The target keeps many of its values in a narrower type (autocast). A few are a fault.
  bool is_narrower = false;
  // Most calls that compute have floating types that cannot stand against golden's: float64
  // against float32. Then that is what the runs differ in, not the first such call.
  bool is_other = false;
};

TypeChoice TypeChoiceOf(const Comparison& comparison);

// Whether a floating type given as an argument is narrower in the target.
bool IsNarrowerType(const Item& target, const Item& golden);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_TYPE_CHOICE_H_
