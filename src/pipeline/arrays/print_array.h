// One .npy file for people to read: what `parse pt` prints.

#ifndef PLUMBLINE_PIPELINE_ARRAYS_PRINT_ARRAY_H_
#define PLUMBLINE_PIPELINE_ARRAYS_PRINT_ARRAY_H_

#include <string>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline {

// "[Shape: (2, 3)] [Dtype: float32] [Max: 5.0] [Min: 0.0] [Mean: 2.5]". NaN where an element is.
std::string ArrayFacts(const TensorView& view);

// Facts, paths, and the first 128 elements, eight a row. Writes all elements to {path}.txt unless
// that is there: a line per row of the last dimension, as "%g". kInvalidArgument: no elements;
// errors of npy::NpyFile::Open(), kIo.
Result<std::string> PrintArray(const std::string& path);

// {path}.txt, written unless it is there; returns its path.
Result<std::string> WriteArrayText(const std::string& path, const TensorView& view);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_ARRAYS_PRINT_ARRAY_H_
