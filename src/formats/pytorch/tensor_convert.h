// Tensor files from one format to the other.

#ifndef PLUMBLINE_FORMATS_PYTORCH_TENSOR_CONVERT_H_
#define PLUMBLINE_FORMATS_PYTORCH_TENSOR_CONVERT_H_

#include <cstdint>
#include <string>

#include "base/file/file.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline {

struct ConvertedTensor {
  uint64_t bytes = 0;    // of the new file
  bool widened = false;  // to float32, because the new format lacks the dtype
};

// Writes a .npy file. bfloat16 and float8 become float32, which holds all of their values. kIo.
Result<ConvertedTensor> WriteNpy(const TensorView& view, const std::string& to);
Result<ConvertedTensor> WriteNpy(const TensorView& view, AtomicFile& to);  // the caller commits it
// Writes a .pt file. kIo.
Result<ConvertedTensor> WritePt(const TensorView& view, const std::string& to);
Result<ConvertedTensor> WritePt(const TensorView& view, AtomicFile& to);
// Reads the .pt file `from` and writes the .npy file `to`. bfloat16 and float8 become float32,
// which holds all of their values. Errors as PtFile::Open, kIo.
Result<ConvertedTensor> PtToNpy(const std::string& from, const std::string& to);
// The other way round.
Result<ConvertedTensor> NpyToPt(const std::string& from, const std::string& to);
// A copy byte for byte, in a file of its own. Returns its size.
Result<uint64_t> CopyFileBytes(const std::string& from, const std::string& to);

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_PYTORCH_TENSOR_CONVERT_H_
