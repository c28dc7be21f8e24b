// What calls without counterpart leave behind.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_OWN_RESULTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_OWN_RESULTS_H_

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether all floating-point results of the target's own forward calls are read by a later call:
// what ends with them is compared with nothing. A result that no loss depends on (it requires a
// gradient and got none, although calls behind its own have theirs) may stay unread, as the state
// that a loop leaves after its last round; but where golden's own calls leave results of that
// shape, it must agree with one of them. Masks and indices are often read through views that no
// recorder sees, and what is made of them is a result itself. `noise`: largest relative error that
// counts as noise.
bool AllOwnResultsAreRead(const Comparison& comparison, double noise);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_OWN_RESULTS_H_
