// Causes that move values instead of changing them: transposed, shifted, permuted; and those that
// statistics alone can show.

#ifndef PLUMBLINE_MEASURE_CAUSE_LAYOUT_H_
#define PLUMBLINE_MEASURE_CAUSE_LAYOUT_H_

#include <optional>

#include "measure/cause_class.h"
#include "plumbline/compare.h"

namespace plumbline::measure {

// "transposed", "shifted" or "permuted" when the elements of the target are those of the golden
// tensor at other places; nothing otherwise.
std::optional<Cause> FindLayoutCause(const CausePair& pair, const PairSums& sums);

// Cause classes that max, min, mean and norm can show, for recordings without tensors.

// "scale", "sign", "offset", "zeroed-block", "nonfinite", "saturated" or "narrowed" from the
// statistics of both sides; never of high confidence but for NaN, infinities and zeros, which are
// facts. `explained`: relative error that rounding and the inputs explain.
Cause ClassifyStatistics(const Item& target, const Item& golden, double explained);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_LAYOUT_H_
