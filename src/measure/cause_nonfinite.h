// NaN and infinities that one side has: where, and which input element explains the first.

#ifndef PLUMBLINE_MEASURE_CAUSE_NONFINITE_H_
#define PLUMBLINE_MEASURE_CAUSE_NONFINITE_H_

#include <optional>
#include <string_view>

#include "measure/cause_values.h"

namespace plumbline::measure {

// "nonfinite", or "saturated" where the largest number of the type stands for an infinity; nothing
// when both sides have NaN and infinities at the same places.
std::optional<Cause> FindNonFinite(const CausePair& pair, const PairSums& sums,
                                   std::string_view api);

// Largest finite number of a floating dtype; infinity for others.
double LargestFinite(DType dtype);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_NONFINITE_H_
