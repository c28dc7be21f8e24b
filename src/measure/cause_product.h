// Matrix products: done again in double, with the operands as they are and rounded to narrower
// types.

#ifndef PLUMBLINE_MEASURE_CAUSE_PRODUCT_H_
#define PLUMBLINE_MEASURE_CAUSE_PRODUCT_H_

#include <optional>

#include "measure/cause_values.h"

namespace plumbline::measure {

// "narrowed" when operands rounded to a narrower type reproduce the target, "accumulation" when
// they do not, yet golden is the exact product and the target is off like a sum rounded on the way.
// Nothing for calls that are no product of two recorded operands, and for parts of a tensor.
std::optional<Cause> FindProductCause(const CauseRequest& request, const CausePair& pair,
                                      const PairSums& sums);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_PRODUCT_H_
