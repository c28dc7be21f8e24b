// Everything the recorder wants to know about one tensor, from one pass over its memory.

#ifndef PLUMBLINE_KERNELS_TENSOR_SCAN_H_
#define PLUMBLINE_KERNELS_TENSOR_SCAN_H_

#include <cstddef>
#include <cstdint>

#include "base/digest.h"
#include "kernels/kernel_table.h"
#include "plumbline/tensor.h"

namespace plumbline::kernels {

// What ScanTensor() is to compute.
struct ScanWants {
  bool moments = true;
  bool crc32 = false;  // over the elements in row-major order
  // bfloat16 elements enter the CRC as float32, as upstream 1.2.2 does; no effect on other dtypes.
  bool crc_of_float32 = false;
  bool xxh3 = false;  // over the elements in row-major order, in their own dtype
  // Contiguous copy in row-major order; null for none. Requires: view.size_bytes() bytes there.
  std::byte* copy_to = nullptr;
};

struct TensorScan {
  Moments moments;
  uint32_t crc32 = 0;  // 0 for an empty tensor
  Digest128 xxh3;
};

// Reads `view` once, whatever its strides, chunk by chunk while each chunk is in cache. Members
// not wanted keep their defaults. The result is that of the contiguous copy, bit for bit, on every
// CPU target and in every floating-point mode (flush-to-zero set by the application is undone
// for the duration). Never allocates; thread-safe.
TensorScan ScanTensor(const TensorView& view, const ScanWants& wants);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_TENSOR_SCAN_H_
