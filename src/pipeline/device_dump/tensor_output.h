// Writing one tensor of a device dump as an array of another program.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_TENSOR_OUTPUT_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_TENSOR_OUTPUT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "pipeline/device_dump/host_tensor.h"

namespace plumbline::pipeline {

enum class OutputKind : uint8_t {
  kNpy,
  kMsNpy,     // the same bytes under MindSpore's names
  kGraphNpy,  // under those of static-graph dumps; a tensor without the layout keeps its own
  kBin,       // the stored bytes
  kPt,
  kTxt,  // a value a line, as numpy.savetxt writes a flattened array
};

// Writes the whole file; the caller commits it. bfloat16, float8 and HiFloat8 become float32 in
// arrays. Returns its bytes. kInvalidDataType (types that only kBin can keep), kInvalidDumpData
// (fewer bytes than the shape needs), kWriteError.
DumpResult<uint64_t> WriteTensor(const HostTensor& tensor, OutputKind kind, AtomicFile& file);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_TENSOR_OUTPUT_H_
