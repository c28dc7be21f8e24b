#include "kernels/magnitude_sums.h"

namespace plumbline::kernels {

void AddMagnitudes(DType dtype, const void* data, size_t count, MagnitudeSums* sums) {
  ActiveTable().magnitudes(dtype, data, count, sums);
}

void CountRange(DType dtype, const void* data, size_t count, RangeCount* range) {
  ActiveTable().count_range(dtype, data, count, range);
}

void AddChanges(const PairOfRuns& runs, ChangeSums* sums, ChangeLimit* limits, size_t limit_count) {
  ActiveTable().changes(runs, sums, limits, limit_count);
}

}  // namespace plumbline::kernels
