// How the errors of one tensor against another are distributed: by size, relative to golden, in
// units in the last place, and by the magnitude of golden.

#ifndef PLUMBLINE_VIEW_VALUES_ERROR_COUNTS_H_
#define PLUMBLINE_VIEW_VALUES_ERROR_COUNTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plumbline/result.h"
#include "view/values/distribution.h"
#include "view/values/value_file.h"

namespace plumbline::view {

// Counts of numbers above 0 by size, eight bins an octave, the upper edge of each outside.
class OctaveCounts {
 public:
  static constexpr size_t kBins = size_t{1} << 14;  // of exponent and three bits of the significand

  OctaveCounts() : counts_(kBins, 0) {}
  // The bin of a number that is at least 0.
  static size_t BinOf(double value);
  static double LowerEdge(size_t bin);
  void AddTo(size_t bin, uint64_t times) { counts_[bin] += times; }
  void Add(const OctaveCounts& other);
  // How many were in a bin, which is empty then.
  uint64_t TakeFrom(size_t bin) { return std::exchange(counts_[bin], 0); }

  // What it holds, in at most `most` bins of equally many octaves or parts of one; empty bins at
  // the ends are left out. One edge more than counts; nothing where nothing was counted.
  struct Bins {
    std::vector<double> edges;
    std::vector<uint64_t> counts;
  };
  [[nodiscard]] Bins Condensed(size_t most) const;

 private:
  std::vector<uint64_t> counts_;
};

// Of the pairs whose golden lies between two deciles of the magnitudes of golden.
struct DecileErrors {
  double low = 0, high = 0;  // magnitudes of golden; the upper one is outside but in the last
  uint64_t count = 0;
  double absolute_sum = 0, absolute_max = 0;
  double relative_max = 0;  // infinite where golden is 0 and target is not
};

struct ErrorCounts {
  uint64_t elements = 0;
  // Pairs with NaN or infinity on either side, in no other count; of these: other on the sides.
  uint64_t nonfinite = 0, nonfinite_mismatch = 0;
  uint64_t equal = 0;               // finite pairs without difference
  uint64_t relative_infinite = 0;   // golden is 0, or so small that the quotient overflows
  OctaveCounts absolute, relative;  // of the others
  // Pairs at a distance of 0, 1, 2 to 3, 4 to 7, ... representable numbers of the data type of
  // golden, to which the target is rounded where it has another; empty for integers and complex.
  std::vector<uint64_t> ulp;
  std::vector<DecileErrors> deciles;  // as many as have different bounds; at most 10
};

// One pass over both, on the threads of the caller's arena; the result does not depend on their
// number. `golden`: its distribution. Requires: one shape. kNotFound "cancelled".
Result<ErrorCounts> CountErrors(const PairReader& pair, const Distribution& golden,
                                CancelFlag cancel);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_VALUES_ERROR_COUNTS_H_
