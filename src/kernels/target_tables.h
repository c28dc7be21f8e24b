// The tables that the target_*.cc files define; kernel_table.cc chooses among them.

#ifndef PLUMBLINE_KERNELS_TARGET_TABLES_H_
#define PLUMBLINE_KERNELS_TARGET_TABLES_H_

#include "kernels/kernel_table.h"

namespace plumbline::kernels {

extern const KernelTable kBaselineTable;
extern const KernelTable kAvx2Table;    // x86-64 only
extern const KernelTable kAvx512Table;  // x86-64 only

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_TARGET_TABLES_H_
