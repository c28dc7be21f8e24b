// What two runs can be compared by: digests, statistics or tensors.

#ifndef PLUMBLINE_PIPELINE_COMPARE_MODE_H_
#define PLUMBLINE_PIPELINE_COMPARE_MODE_H_

#include "pipeline/pair_calls.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Of runs of one task and level; static graphs may hold tensors on one side and statistics on the
// other, and stand against calls only where a data mapping says what is the same.
// Errors: kInvalidArgument, which names the run that does not fit and what to record instead.
Result<CompareMode> ModeOf(const PairingSide& target, const PairingSide& golden,
                           bool has_data_mapping);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_COMPARE_MODE_H_
