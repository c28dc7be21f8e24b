// Evidence for the plots of a report: samples of the two tensors that show the first wrong call.

#ifndef PLUMBLINE_EXPLAIN_SAMPLE_EVIDENCE_H_
#define PLUMBLINE_EXPLAIN_SAMPLE_EVIDENCE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/compare.h"
#include "plumbline/tensor.h"

namespace plumbline::explain {

// One element of both tensors. `index` counts elements in row-major order.
struct ElementPair {
  uint64_t index = 0;
  double target = 0, golden = 0;
};

// Relative errors of elements by decade: bucket i holds those from 10^(kLow + i kStep).
struct ErrorHistogram {
  static constexpr double kLow = -16, kStep = 0.5;
  static constexpr size_t kBuckets = 40;  // the last one up to 10^4 and beyond
  std::array<uint64_t, kBuckets> counts{};
  uint64_t equal = 0;      // elements without error, NaN at the same place included
  uint64_t nonfinite = 0;  // NaN or infinite on either side, and not equal
  uint64_t total = 0;      // elements looked at
};

struct Evidence {
  std::string item;                // name of the row
  uint64_t count = 0;              // elements of each side
  std::vector<int64_t> shape;      // of the target
  std::vector<ElementPair> pairs;  // in index order, the worst ones among them
  std::vector<ElementPair> worst;  // the largest |difference| first; NaN and infinities before all
  ErrorHistogram histogram;
  std::vector<double>
      profile;  // largest |difference| per equal stretch of elements; NaN: nonfinite
};

// Reads the tensor files of the row named by `first_wrong_call`, beside the compared dump.json.
// Nothing where no call is wrong, where the dumps hold no tensors, or where a file has gone or does
// not fit any more: a report is then written without plots.
std::optional<explain::Evidence> SampleEvidence(const Comparison& comparison);

// The same for two tensors of equal element count; nothing when they are empty, complex, or of
// different counts. Big tensors are read at evenly spaced elements.
std::optional<explain::Evidence> SampleTensors(const TensorView& target, const TensorView& golden);

}  // namespace plumbline::explain

#endif  // PLUMBLINE_EXPLAIN_SAMPLE_EVIDENCE_H_
