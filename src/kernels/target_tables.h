// The tables that the target_*.cc files define; kernel_table.cc chooses among them.

#ifndef PLUMBLINE_KERNELS_TARGET_TABLES_H_
#define PLUMBLINE_KERNELS_TARGET_TABLES_H_

#include "kernels/kernel_table.h"

namespace plumbline::kernels {

extern const KernelTable kBaselineTable;
extern const KernelTable kAvx2Table;    // x86-64 only
extern const KernelTable kAvx512Table;  // x86-64 only

// Largest ULP distance when the target has another dtype than `golden`: each `target` value is
// rounded to the golden dtype first. Not compiled per CPU target: a rare case, and scalar.
uint64_t MaxUlpRounded(DType golden_dtype, const float* target, const void* golden, size_t count);
uint64_t MaxUlpRounded(DType golden_dtype, const double* target, const void* golden, size_t count);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_TARGET_TABLES_H_
