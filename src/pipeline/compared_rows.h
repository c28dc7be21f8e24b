// From pairs of calls to the calls and rows of a comparison.

#ifndef PLUMBLINE_PIPELINE_COMPARED_ROWS_H_
#define PLUMBLINE_PIPELINE_COMPARED_ROWS_H_

#include <vector>

#include "match/expand.h"
#include "match/name_match.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Fills calls, rows and the counts of calls, in the order of the pairs. The rows refer to the items
// of both sides; paired items of one name share its text. Runs on the threads of the caller's
// arena.
void BuildRows(const std::vector<match::CallPair>& pairs, std::vector<match::CallItems>& target,
               std::vector<match::CallItems>& golden, Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_COMPARED_ROWS_H_
