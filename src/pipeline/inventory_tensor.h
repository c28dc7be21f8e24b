// One tensor file, described.

#ifndef PLUMBLINE_PIPELINE_INVENTORY_TENSOR_H_
#define PLUMBLINE_PIPELINE_INVENTORY_TENSOR_H_

#include <string>

#include "pipeline/inventory.h"

namespace plumbline {

// `path` ends with .npy, or is read as .pt. Errors as PtFile::Open and NpyFile::Open.
Result<TensorFacts> ReadTensorFacts(const std::string& path);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_INVENTORY_TENSOR_H_
