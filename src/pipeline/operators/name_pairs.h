// Pairs the operators of two recordings that need no rule file: by name.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_NAME_PAIRS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_NAME_PAIRS_H_

#include <vector>

#include "load/operator_dumps.h"
#include "pipeline/operators/paired_operator.h"

namespace plumbline::pipeline {

// Operators of equal name (and thread, where an operator was split), the first execution with the
// first. In the order of my timestamps; those of the golden side alone come last.
std::vector<PairedOperator> PairByName(load::OperatorDumps target, load::OperatorDumps golden);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_NAME_PAIRS_H_
