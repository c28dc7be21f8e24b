// What a call is given, found by place or by keyword.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CALL_ARGUMENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CALL_ARGUMENTS_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether `row` is the argument at `place`, counted from 0, or the one of that keyword, of the call
// `call_name`, which is named as the row's item: as on the target where the target has the row.
bool IsArgument(const ComparedRow& row, std::string_view call_name, size_t place,
                std::string_view keyword);

// The first such argument on one side; null where that side leaves it out.
const Item* ArgumentOf(std::span<const ComparedRow> rows, std::string_view call_name,
                       bool of_target, size_t place, std::string_view keyword);

// Whether batch_norm or instance_norm takes on one side the statistics of its input, not the running
// ones. They have this flag at one place in all their forms; where it is left out, PyTorch takes
// those of the input for instance_norm alone.
bool TakesOwnStatistics(std::span<const ComparedRow> rows, std::string_view call_name,
                        bool of_target);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CALL_ARGUMENTS_H_
