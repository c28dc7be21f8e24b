// Causes that move values instead of changing them: transposed, shifted, permuted.

#ifndef PLUMBLINE_MEASURE_CAUSE_LAYOUT_H_
#define PLUMBLINE_MEASURE_CAUSE_LAYOUT_H_

#include <optional>

#include "measure/cause_values.h"

namespace plumbline::measure {

// "transposed", "shifted" or "permuted" when the elements of the target are those of the golden
// tensor at other places; nothing otherwise.
std::optional<Cause> FindLayoutCause(const CausePair& pair, const PairSums& sums);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_LAYOUT_H_
