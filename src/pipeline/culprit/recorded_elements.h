// The elements of a recorded tensor.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_RECORDED_ELEMENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_RECORDED_ELEMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The elements of a tensor of one side, of its first `rows` rows if that is given; nothing where it
// has no readable file, or more than 2^20 of them. Requires: `rows` at most its first dimension.
std::optional<std::vector<double>> RecordedElements(const Comparison& comparison, const Item& item,
                                                    bool of_target,
                                                    std::optional<int64_t> rows = std::nullopt);

// Where the tensor files of one side are.
std::string TensorDirectoryOf(const Comparison& comparison, bool of_target);

// The data_name by which a tensor of an earlier step is found (EarlierStep).
std::string EarlierFile(std::string_view dump_json, std::string_view file);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_RECORDED_ELEMENTS_H_
