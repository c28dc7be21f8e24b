// How the elements of one tensor, or the differences of two, are distributed: counts of what is no
// plain number, moments, exact quantiles, and how many lie in each bin of a histogram.

#ifndef PLUMBLINE_VIEW_VALUES_DISTRIBUTION_H_
#define PLUMBLINE_VIEW_VALUES_DISTRIBUTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plumbline/result.h"
#include "view/values/value_file.h"

namespace plumbline::view {

// Of all elements; what lies between two of them is interpolated, as numpy.quantile() does.
inline constexpr std::array<double, 9> kQuantiles = {0,    0.001, 0.01,  0.25, 0.5,
                                                     0.75, 0.99,  0.999, 1};
inline constexpr size_t kDeciles = 10;

// Everything but the counts is of the finite elements; 0 where there are none.
struct Distribution {
  uint64_t elements = 0;
  uint64_t nan = 0, inf = 0, minus_inf = 0;
  uint64_t zero = 0;       // both zeros
  uint64_t subnormal = 0;  // closer to 0 than the smallest normal number of the data type
  double min = 0, max = 0, mean = 0;
  double norm = 0;  // root of the sum of squares
  std::array<double, kQuantiles.size()> quantiles{};
  // Magnitudes: the smallest of all, then of each further tenth of the elements, then the largest.
  std::array<double, kDeciles + 1> deciles{};
  // Of types of at most 16 bits: every finite value that occurs, ascending, and how often.
  struct Value {
    double value;
    uint64_t count;
  };
  std::vector<Value> table;
  bool has_table = false;

  [[nodiscard]] uint64_t finite() const { return elements - nan - inf - minus_inf; }
};

// Two passes over float32 tensors, up to four over wider types, one over those of at most 16 bits.
// On the threads of the caller's arena; the result does not depend on their number.
// kNotFound "cancelled".
Result<Distribution> DistributionOf(const ElementReader& reader, CancelFlag cancel);
// The same of target - golden, without deciles; no difference is subnormal. Requires: tensors of
// one shape.
Result<Distribution> DistributionOfDifference(const PairReader& pair, CancelFlag cancel);

inline constexpr size_t kHistogramBins = 256;
using BinEdges = std::vector<double>;     // kHistogramBins + 1, ascending; or none
using BinCounts = std::vector<uint64_t>;  // kHistogramBins

// Evenly spaced; those of a symmetric logarithm are even in sign(x) * log(1 + |x| / threshold),
// where the threshold is a millionth of the largest magnitude.
enum class BinScale : uint8_t { kLinear, kSymmetricLog };
BinEdges EdgesBetween(double low, double high, BinScale scale);

// How many elements lie in each bin, from its lower edge up to below the upper one (the last bin
// has both): neither zeros nor subnormal numbers, NaN or infinities, which the distribution counts.
// Requires: all finite elements lie between the outer edges. kNotFound "cancelled".
Result<BinCounts> CountBins(const ElementReader& reader, const Distribution& distribution,
                            const BinEdges& edges, CancelFlag cancel);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_VALUES_DISTRIBUTION_H_
