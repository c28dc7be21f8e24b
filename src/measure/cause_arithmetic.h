// Causes that change values: products of rounded operands, NaN and infinities, one operation on the
// golden values.

#ifndef PLUMBLINE_MEASURE_CAUSE_ARITHMETIC_H_
#define PLUMBLINE_MEASURE_CAUSE_ARITHMETIC_H_

#include <optional>
#include <string_view>

#include "measure/cause_class.h"

namespace plumbline::measure {

// Matrix products: done again in double, with the operands as they are and rounded to narrower
// types.

// "narrowed" when operands rounded to a narrower type reproduce the target, "accumulation" when
// they do not, yet golden is the exact product and the target is off like a sum rounded on the way.
// Nothing for calls that are no product of two recorded operands, and for parts of a tensor.
std::optional<Cause> FindProductCause(const CauseRequest& request, const CausePair& pair,
                                      const PairSums& sums);

// NaN and infinities that one side has: where, and which input element explains the first.

// "nonfinite", or "saturated" where the largest number of the type stands for an infinity; nothing
// when both sides have NaN and infinities at the same places.
std::optional<Cause> FindNonFinite(const CausePair& pair, const PairSums& sums,
                                   std::string_view api);

// Largest finite number of a floating dtype; infinity for others.
double LargestFinite(DType dtype);

// Causes that are one operation on the golden values: factor, sign, addend, offset, bound, zeros.
// Each returns nothing when its class does not fit.

// "sign" or "scale": one factor for all elements.
std::optional<Cause> FindFactor(const CausePair& pair, const PairSums& sums);
// "scale": one factor per row or channel, or a recorded tensor as factor.
std::optional<Cause> FindFactors(const CausePair& pair, const PairSums& sums);
// "missing-addend" or "extra-addend": the difference is an operand.
std::optional<Cause> FindAddend(const CausePair& pair, const PairSums& sums);
// "offset": one constant for all elements; one per row or channel.
std::optional<Cause> FindConstant(const CausePair& pair, const PairSums& sums);
std::optional<Cause> FindConstants(const CausePair& pair, const PairSums& sums);
// "saturated" (the target is clamped) or "not-saturated" (only golden is).
std::optional<Cause> FindBound(const CausePair& pair, const PairSums& sums);
// "zeroed-block": a block of the target is zero.
std::optional<Cause> FindZeroed(const CausePair& pair, const PairSums& sums);
// "stale", "not-applied" or "other-rank": the target equals a candidate.
std::optional<Cause> FindEqual(const CausePair& pair, const PairSums& sums);
// Whether a function of torch.distributed sums over ranks: all_reduce, reduce_scatter, ...
bool IsReduction(std::string_view api);
// "not-reduced": a reduction (`api` tells) returned its input, or golden is the sum or mean over
// ranks.
std::optional<Cause> FindUnreduced(const CausePair& pair, const PairSums& sums,
                                   std::string_view api);

// "1/sqrt(64)" and the like for a factor near one that programs use, with dimensions taken from
// `shape`; empty for others.
std::string FactorName(double factor, const Shape& shape, double tolerance);

// The factor with its name: "0.125 (near 1/8)".
std::string FactorText(double factor, const Shape& shape, double tolerance);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_ARITHMETIC_H_
