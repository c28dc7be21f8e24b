// Pairing the calls of two opened runs, with the mapping files that the user gave.

#ifndef PLUMBLINE_PIPELINE_PAIR_CALLS_H_
#define PLUMBLINE_PIPELINE_PAIR_CALLS_H_

#include <vector>

#include "match/name_match.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// One side; borrowed.
struct PairingSide {
  const Run& run;
  std::vector<match::CallItems>& calls;  // of run.calls(), in its order
};

// Reads the mapping files of `options` and pairs the calls. What is odd but no error (a line of a
// mapping that fits nothing, a name without direction) is added to comparison.warnings. Sets
// mapped_name and mapped_parts of the target's calls.
// Errors: those of match/mapping_file.h; kInvalidArgument when a mapping does not fit the
// frameworks of the runs.
Result<std::vector<match::CallPair>> PairCalls(const PairingSide& target, const PairingSide& golden,
                                               const CompareOptions& options,
                                               Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_PAIR_CALLS_H_
