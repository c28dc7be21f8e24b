// One element that is wrong among many that are right, where it is no larger than these.

#ifndef PLUMBLINE_MEASURE_LONE_ELEMENT_H_
#define PLUMBLINE_MEASURE_LONE_ELEMENT_H_

#include <cstddef>

#include "plumbline/tensor.h"

namespace plumbline::measure {

// How two arrays differ as a whole: root mean squares over their finite pairs.
struct TypicalDifference {
  double difference = 0, golden = 0;
  double unit_roundoff = 0;  // of the coarser of the two types
};

// A lone element is further off than this: where none is, there is no need to look.
double LeastOfLoneElement(const TypicalDifference& typical);

// Whether some element is off by more than 16 of its own roundings and 8 times as far as rounding
// of a typical element and as the typical difference, while hardly any other is off by more than 8
// of its own: noise of sums leaves one of twenty elements that far off, as it is no smaller where
// the sum is. Of contiguous arrays of equally many elements; complex ones: false.
bool HasLoneElement(const TensorView& target, const TensorView& golden,
                    const TypicalDifference& typical);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_LONE_ELEMENT_H_
