// What a perturbation makes of the values of one tensor.

#ifndef PLUMBLINE_WATCH_PERTURB_NOISE_H_
#define PLUMBLINE_WATCH_PERTURB_NOISE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "config/perturbation.h"
#include "kernels/tensor_scan.h"
#include "plumbline/tensor.h"

namespace plumbline::perturb {

enum class Noise : uint8_t {
  kAbsolute,  // x + e where |x| > sqrt(e)
  kNext,      // the next number up or down, by chance
  kLowBit,    // lowest bit of the mantissa flipped where |x| is above the smallest normal number
  kSwap,      // first and last element, or sub-tensors [0][0] and [-1][-1], changed over
};

// e of a dtype, also the square of the tolerance that outputs are compared with; 0: none.
double NoiseOf(DType dtype);
// The tolerance: sqrt(e), of dtypes without e that of 1e-8.
double ToleranceOf(DType dtype);

// Where changed values go: memory of the source's shape and dtype.
struct Target {
  std::byte* data = nullptr;
  std::span<const int64_t> strides;
};

struct Change {
  uint64_t changed = 0;       // elements whose bits differ
  std::string_view obstacle;  // why nothing can be changed; empty: nothing speaks against it
};

// Copies `source` to `target` with the noise. NaN, infinite and zero elements stay as they are,
// as does what rounding makes of x + e where it is x. `seed` chooses the signs of kNext. `team`
// shares out large tensors; null: this thread alone. With an obstacle the target is not written.
Change AddNoise(Noise noise, uint64_t seed, const TensorView& source, const Target& target,
                const kernels::Team* team);

}  // namespace plumbline::perturb

#endif  // PLUMBLINE_WATCH_PERTURB_NOISE_H_
