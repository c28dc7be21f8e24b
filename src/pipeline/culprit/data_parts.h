// The data that two runs read, where they cut it into other parts.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_DATA_PARTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_DATA_PARTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// What parts of one thing share: the API, the argument, the type, and the shape but for the first
// dimension. Of calls that move values only all results are parts of one thing. Requires: `item`
// has a dimension.
std::string PlaceOf(std::string_view call_name, const Item& item);

// Whether the parts of one side, laid one behind the other along the first dimension, may be those
// of the other side: as many elements, and maximum, minimum, sum and norm are the same.
bool HoldTheSame(std::span<const DataPart> target, std::span<const DataPart> golden);

// Maximum, minimum, mean and norm of the parts laid one behind the other; nothing where one of them
// has no finite statistics or they are no parts of one thing (other trailing dimensions).
std::optional<std::array<Recorded, 4>> StatisticsTogether(std::span<const DataPart> parts);

// All data that forward calls of both sides take from outside the recording, directly or through
// calls that move values only, in parts of other sizes. Empty where there are none.
std::vector<DataParts> FindDataParts(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_DATA_PARTS_H_
