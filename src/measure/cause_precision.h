// Causes that look like noise: a narrower type, another sum, other random numbers, dropout.

#ifndef PLUMBLINE_MEASURE_CAUSE_PRECISION_H_
#define PLUMBLINE_MEASURE_CAUSE_PRECISION_H_

#include <optional>
#include <string_view>

#include "measure/cause_values.h"

namespace plumbline::measure {

// "narrowed" (values or errors of a narrower type) or "accumulation" (dense errors of another
// size). `sums_up`: one element of the result is a sum of many terms.
std::optional<Cause> FindPrecision(const CausePair& pair, const PairSums& sums, bool sums_up);
// "dropout" (zeros at a rate p, survivors scaled by 1/(1-p)) or "random-stream" (the same kind of
// numbers without correlation).
std::optional<Cause> FindRandom(const CausePair& pair, const PairSums& sums);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_PRECISION_H_
