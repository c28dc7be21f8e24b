// The gradients of one row of a rotary embedding, y = r1 x + r2 rot(x), rot() turning its halves:
// rot(x)[i] = -x[i + half], rot(x)[i + half] = x[i].

#ifndef PLUMBLINE_KERNELS_ROTARY_ROW_H_
#define PLUMBLINE_KERNELS_ROTARY_ROW_H_

#include <cstddef>

namespace plumbline::kernels {

// dx = r1 g - rot(r2 g); sum1 += g x, sum2 += g rot(x). Each array has 2 half elements; sums and
// products are of doubles, each rounded once: bit-identical on every CPU target.
struct RotaryRow {
  const float *g, *x;
  const double *r1, *r2;
  float* dx;
  double *sum1, *sum2;
  size_t half;
};

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_ROTARY_ROW_H_
