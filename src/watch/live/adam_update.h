// How Adam moves a parameter, from its moments: histograms of the update and of the ratio.

#ifndef PLUMBLINE_WATCH_LIVE_ADAM_UPDATE_H_
#define PLUMBLINE_WATCH_LIVE_ADAM_UPDATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "plumbline/tensor.h"

namespace plumbline::watch {

// Of the optimizer, for one parameter.
struct AdamRule {
  double beta1 = 0, beta2 = 0;  // decay of the first and of the second moment
  double eps = 0;               // added to the root of the second moment
  double step = 0;              // how many steps its moments hold, at least 1
};

inline constexpr size_t kHistogramBins = 30;
// Counts in equal bins over [-1, 1]: each begins with its lower edge, the last one ends with 1.
// Other values and NaN are left out. Edges are -1 + i * (2 / 30) in double.
using Histogram = std::array<uint64_t, kHistogramBins>;

struct AdamHistograms {
  Histogram update = {};  // m / (sqrt(v) + eps)
  Histogram ratio = {};   // m / sqrt(v)
};

// With m = first / (1 - beta1^step) and v = second / (1 - beta2^step), in double and one pass.
// Nothing for moments of two sizes, or of other than floating-point numbers. Requires:
// rule.step >= 1.
std::optional<AdamHistograms> HistogramsOfAdam(const TensorView& first, const TensorView& second,
                                               const AdamRule& rule);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_ADAM_UPDATE_H_
