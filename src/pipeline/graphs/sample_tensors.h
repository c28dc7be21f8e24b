// The first elements of large tensors in place of all of them, as MindSpore's sample_mode keeps
// them on Ascend.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_SAMPLE_TENSORS_H_
#define PLUMBLINE_PIPELINE_GRAPHS_SAMPLE_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// Replaces every .npy file of more than `sample_num` elements by one of shape [sample_num] with the
// first elements in row-major order. The shapes that tensors had stand in sample.json beside them,
// which is written before the first file is replaced: a killed process leaves no sample that looks
// like a whole tensor, and can be run again. Files that cannot be read stay. Returns the number of
// files that were replaced. kCorrupt for a damaged sample.json; kIo.
Result<uint64_t> SampleTensors(const std::string& directory, const std::vector<std::string>& files,
                               uint64_t sample_num);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_SAMPLE_TENSORS_H_
