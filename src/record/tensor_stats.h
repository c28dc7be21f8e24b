// The statistics of one tensor, as dump.json holds them, from the sums of one kernel pass.

#ifndef PLUMBLINE_RECORD_TENSOR_STATS_H_
#define PLUMBLINE_RECORD_TENSOR_STATS_H_

#include <optional>

#include "kernels/kernel_table.h"
#include "plumbline/record.h"

namespace plumbline {

// Max, Min, Mean and Norm of a tensor (docs/formats/dump_json.md, "statistics").
struct TensorStats {
  Statistic max, min, mean, norm;
  std::optional<Statistic> max_finite, min_finite;  // set when max (min) is NaN or infinite
};

// Accumulated in double from the original dtype, rounded once to it, and widened again.
//   no elements        all absent
//   complex            of the moduli; no norm
//   bool               max: any, min: all, as truth values; no mean, no norm
//   one 0-d element    the value, four times (integers stay integers)
//   otherwise          max, min, mean, 2-norm as doubles; NaN elements make all four NaN
// `is_scalar`: the tensor has no dimensions.
TensorStats ComputeStats(DType dtype, const kernels::Moments& sums, bool is_scalar);

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_TENSOR_STATS_H_
