// Sums over two runs of elements that describe how the one deviates from the other: relative
// errors, spreads and the divergence of the two as distributions.
//
// Elements of all types are taken as doubles: 64-bit integers above 2^53 are rounded, bool counts
// as 0 and 1. Of complex numbers, |x - y| and |x / y - 1| are distances in the plane, `xy` is the
// real part of x * conj(y); all else, the second pass too, is of the moduli. Bit-identical on every
// CPU target: element i goes to lane i mod kLanes, and logarithms are computed by the same
// operations everywhere, chosen for kLanes elements at a time.

#ifndef PLUMBLINE_KERNELS_DEVIATION_SUMS_H_
#define PLUMBLINE_KERNELS_DEVIATION_SUMS_H_

#include <cstddef>

#include "kernels/kernel_table.h"

namespace plumbline::kernels {

// A relative error counts as 0 where |y| is not above this.
inline constexpr double kSmallestDivisor = 2.220446e-16;

// What a first pass yields, by lane. NaN is left out of extremes and makes sums NaN.
struct DeviationSums {
  alignas(64) double x[kLanes] = {}, y[kLanes] = {}, xx[kLanes] = {}, yy[kLanes] = {};
  alignas(64) double xy[kLanes] = {};
  alignas(64) double absolute[kLanes] = {}, squares[kLanes] = {};  // of x - y
  alignas(64) double relative[kLanes] = {};                        // |x / y - 1|
  alignas(64) double max_absolute[kLanes] = {}, max_relative[kLanes] = {};
  alignas(64) double min_x[kLanes], max_x[kLanes], min_y[kLanes], max_y[kLanes];

  DeviationSums();
};

// Center and scale of the two sides for a second pass. A side as a distribution is
// max((value - offset) * scale, floor), not divided by its sum.
struct SpreadCenter {
  double mean_x = 0, mean_y = 0;
  double offset_x = 0, scale_x = 1, offset_y = 0, scale_y = 1;
  double floor = 0;
};

// What it yields, by lane: squares of the distances from the means; sums of the distributions p and
// q and of p ln(p / q).
struct SpreadSums {
  alignas(64) double squares_x[kLanes] = {}, squares_y[kLanes] = {};
  alignas(64) double p[kLanes] = {}, q[kLanes] = {}, divergence[kLanes] = {};
};

// Adds the pairs with the active table. Requires: every earlier count was a multiple of kLanes.
void AddDeviations(const PairOfRuns& runs, DeviationSums* sums);
// The same. `divergence` is meaningful only if p and q are positive normal numbers; each logarithm
// is right to 3 units of the last place.
void AddSpreads(const SpreadCenter& center, const PairOfRuns& runs, SpreadSums* sums);

// Sum of lanes in a fixed order.
double SumOfLanes(const double* lanes);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_DEVIATION_SUMS_H_
