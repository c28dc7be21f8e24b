// Causes that look like noise: a narrower type, another sum, other random numbers, dropout.

#ifndef PLUMBLINE_MEASURE_CAUSE_PRECISION_H_
#define PLUMBLINE_MEASURE_CAUSE_PRECISION_H_

#include <optional>
#include <string_view>

#include "measure/cause_class.h"

namespace plumbline::measure {

// How the values came about, as far as it matters for rounding.
enum class Making : uint8_t {
  kElementwise,
  kSum,     // one element is a sum of many terms
  kSource,  // no recorded call made them
};

// "narrowed" (values or errors of a narrower type) or "accumulation" (dense errors of another
// size). For a pair that no recorded call made, small dense changes are "stale", of low confidence.
std::optional<Cause> FindPrecision(const CausePair& pair, const PairSums& sums, Making making);
// "random": dropout on one side (zeros at a rate p, survivors scaled by 1/(1-p)), other zeros of
// one rate, or the same kind of numbers without correlation.
std::optional<Cause> FindRandom(const CausePair& pair, const PairSums& sums);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_PRECISION_H_
