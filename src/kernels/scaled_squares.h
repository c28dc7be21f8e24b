// Sums of squares of doubles whose squares overflow or vanish.

#ifndef PLUMBLINE_KERNELS_SCALED_SQUARES_H_
#define PLUMBLINE_KERNELS_SCALED_SQUARES_H_

#include "kernels/kernel_table.h"

namespace plumbline::kernels {

// Where the largest magnitude of a side, or of the differences, is so large or so small that
// squares of it or sums of them are no numbers (doubles beyond about 2^480 and below 2^-400), takes
// all four sums again, of elements times a power of two, and notes its exponent. Else, as nearly
// always, nothing is read. `sums` are those of one pass over `runs`. Bit-identical on every CPU
// target.
void RescaleSquares(const PairOfRuns& runs, Pairwise* sums);

// The L2 norms behind the sums; of `target - golden`. Infinite only where the norm itself is no
// double.
double TargetNorm(const Pairwise& sums);
double GoldenNorm(const Pairwise& sums);
double DifferenceNorm(const Pairwise& sums);
// DifferenceNorm() over GoldenNorm(), also where these are no doubles; above 0 unless the
// difference is 0. NaN where golden's norm is 0.
double RelativeNorm(const Pairwise& sums);
// The cosine of the angle between the two. NaN where a norm is 0.
double CosineOf(const Pairwise& sums);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_SCALED_SQUARES_H_
