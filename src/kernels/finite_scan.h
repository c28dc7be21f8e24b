// Whether a tensor holds NaN or Inf: one pass that stops at the first piece that does.

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

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_FINITE_SCAN_H_
