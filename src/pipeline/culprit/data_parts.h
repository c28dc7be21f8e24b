// The data that two runs read, where they cut it into other parts.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_DATA_PARTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_DATA_PARTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// A tensor that one side reads or cuts off, and the call (an index into Comparison::calls).
struct DataPart {
  uint32_t call = 0;
  const Item* item = nullptr;
};

// The same data on both sides, in the order in which they are read.
struct DataParts {
  std::vector<DataPart> target, golden;
};

// Whether the parts of one side, laid one behind the other along the first dimension, may be those
// of the other side: as many elements, and maximum, minimum, sum and norm are the same.
bool HoldTheSame(std::span<const DataPart> target, std::span<const DataPart> golden);

// All data that forward calls of both sides take from outside the recording, directly or through
// calls that move values only, in parts of other sizes. Empty where there are none.
std::vector<DataParts> FindDataParts(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_DATA_PARTS_H_
