// What a summary says of one tensor.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_TENSOR_EXTREMES_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_TENSOR_EXTREMES_H_

#include <string>

#include "formats/acl_types.h"

namespace plumbline::pipeline {

// As Python prints them: integers exactly, "nan" where an element is NaN.
struct TensorExtremes {
  std::string max, min, mean;
};

// Requires: at least one element, no complex type.
TensorExtremes ExtremesOf(const acl::Elements& elements);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_TENSOR_EXTREMES_H_
