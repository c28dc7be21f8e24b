// How many elements of two arrays agree: the figures of upstream's SingleComparator.

#ifndef PLUMBLINE_MEASURE_ELEMENT_MATCH_H_
#define PLUMBLINE_MEASURE_ELEMENT_MATCH_H_

#include <cstdint>
#include <optional>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

// Relative errors are |a - b| / max(|a|, |b|), 0 when both are 0. A pair with NaN is unequal and
// within no limit; both infinities of one sign are equal.
struct ElementMatch {
  uint64_t count = 0;
  uint64_t equal = 0;
  uint64_t within_thousandth = 0, within_hundredth = 0;
  std::optional<uint64_t> first_mismatch;  // flat index
  double max_abs = 0, max_relative = 0;    // NaN when a pair has one
};

// Of the common part: arrays of different rank are flattened, longer dimensions are cropped. Values
// are widened to double, so unsigned ones do not wrap. kUnsupported: complex elements.
Result<ElementMatch> MatchElements(const TensorView& a, const TensorView& b);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_ELEMENT_MATCH_H_
