// What conditions on tensors ask beside the moments: sums over finite elements, how many elements
// lie in a range, and how far a tensor moved from an earlier value.
//
// Elements of all types are taken as doubles, complex ones by modulus: 64-bit integers above 2^53
// are rounded. Bit-identical on every CPU target: element i goes to lane i mod kLanes.

#ifndef PLUMBLINE_KERNELS_MAGNITUDE_SUMS_H_
#define PLUMBLINE_KERNELS_MAGNITUDE_SUMS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace plumbline::kernels {

// Over finite elements, by lane.
struct MagnitudeSums {
  alignas(64) double absolute[kLanes] = {}, sum[kLanes] = {}, squares[kLanes] = {};
};

// Elements below and above a range, infinite ones among them; NaN is neither.
struct RangeCount {
  double start = 0, end = 0;
  uint64_t below = 0, above = 0;
};

// Of pairs of finite elements, by lane: |x - p| and |p|.
struct ChangeSums {
  alignas(64) double change[kLanes] = {}, before[kLanes] = {};
};

// How many of these pairs have |x - p| above atol + rtol * |p|.
struct ChangeLimit {
  double rtol = 0, atol = 0;
  uint64_t above = 0;
};

// Each adds elements with the active table. Requires: every earlier count was a multiple of kLanes.
void AddMagnitudes(DType dtype, const void* data, size_t count, MagnitudeSums* sums);
void CountRange(DType dtype, const void* data, size_t count, RangeCount* range);
// `target` is x, `golden` its earlier value p.
void AddChanges(const PairOfRuns& runs, ChangeSums* sums, ChangeLimit* limits, size_t limit_count);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_MAGNITUDE_SUMS_H_
