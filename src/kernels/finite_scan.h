// Whether a tensor holds NaN or Inf: one pass that stops at the first piece that does. And the
// magnitudes that it lies between, from one pass too.

#ifndef PLUMBLINE_KERNELS_FINITE_SCAN_H_
#define PLUMBLINE_KERNELS_FINITE_SCAN_H_

#include "kernels/kernel_table.h"
#include "kernels/tensor_scan.h"
#include "plumbline/tensor.h"

namespace plumbline::kernels {

// True if an element is NaN or infinite in its own dtype; of a complex element, if a part is. Only
// bit patterns are looked at, so no floating-point mode matters. Booleans, integers and empty
// tensors: false, without touching memory. `team`: shares out large tensors; null: this thread
// alone. Never allocates; thread-safe.
bool HasNonFinite(const TensorView& view, const Team* team);

// Both questions about two tensors in one pass, which stops soon after the first difference.
// Requires: contiguous, of one type and as many elements.
Likeness LikenessOf(const TensorView& first, const TensorView& second);

struct AbsExtremes {
  double min = 0, max = 0;  // exact but for integers beyond 2^53; both NaN if an element is
  bool has_nan = false;
  bool has_inf = false;
};

// Of a complex element the modulus counts, and the parts for NaN and Inf. An empty tensor has 0 and
// 0. A tensor with NaN is read a second time, up to the first Inf. `team`: shares out large
// tensors; null: this thread alone. Never allocates; thread-safe.
AbsExtremes AbsExtremesOf(const TensorView& view, const Team* team);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_FINITE_SCAN_H_
