// The elements of a recorded tensor.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_RECORDED_ELEMENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_RECORDED_ELEMENTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The elements of a tensor of one side, of its first `rows` rows if that is given; nothing where it
// has no readable file, or more than 2^20 of them. Requires: `rows` at most its first dimension.
std::optional<std::vector<double>> RecordedElements(const Comparison& comparison, const Item& item,
                                                    bool of_target,
                                                    std::optional<int64_t> rows = std::nullopt);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_RECORDED_ELEMENTS_H_
