// Everything the recorder wants to know about one tensor, from one pass over its memory.

#ifndef PLUMBLINE_KERNELS_TENSOR_SCAN_H_
#define PLUMBLINE_KERNELS_TENSOR_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/digest.h"
#include "kernels/kernel_table.h"
#include "plumbline/tensor.h"

namespace plumbline::kernels {

// Threads that are already there and wait for work, such as those of the framework's OpenMP
// runtime. Borrowed; used by one scan at a time.
struct Team {
  int size = 1;
  // Runs body(data, worker) for worker = 0 .. size-1 and returns when all are done.
  void (*run)(int size, void (*body)(void* data, int worker), void* data) = nullptr;
};

// What ScanTensor() is to compute.
struct ScanWants {
  bool moments = true;
  bool crc32 = false;  // over the elements in row-major order
  // bfloat16 elements enter the CRC as float32, as upstream 1.2.2 does; no effect on other dtypes.
  bool crc_of_float32 = false;
  bool xor_words = false;        // over the elements in row-major order, in their own dtype
  bool position_digest = false;  // over the elements in row-major order, in their own dtype
  // Digest of the elements in row-major order, in their own dtype: XXH3-128 of up to
  // kBlockElements elements, else of the digests of all blocks, so that it can be shared out.
  bool content = false;
  // Count the elements whose magnitude is below this.
  std::optional<double> below = std::nullopt;
  // Counts of elements above bounds, which are float32 numbers; of no complex tensor.
  std::span<const double> bounds = {};
  // Where to put a bit per element in row-major order, the first one lowest: whether it is above 0
  // (KernelTable::gradient_part). Null for none. Requires: a byte there for every 8 elements begun.
  uint8_t* signs = nullptr;
  // Contiguous copy in row-major order; null for none. Requires: view.size_bytes() bytes there.
  std::byte* copy_to = nullptr;
  // Shares out tensors of several blocks; null: this thread alone. The result is the
  // same.
  const Team* team = nullptr;
};

struct TensorScan {
  Moments moments;
  uint32_t crc32 = 0;      // 0 for an empty tensor
  uint64_t xor_words = 0;  // the same
  Digest128 position_digest;
  Digest128 content;
  uint64_t below = 0;
  std::vector<uint64_t> above;  // of each bound
};

// Reads `view` once, whatever its strides, chunk by chunk while each chunk is in cache. Members
// not wanted keep their defaults. The result is that of the contiguous copy, bit for bit, on every
// CPU target and in every floating-point mode (flush-to-zero set by the application is undone
// for the duration). Allocates only to share work out over a team;
// thread-safe.
TensorScan ScanTensor(const TensorView& view, const ScanWants& wants);

}  // namespace plumbline::kernels

#endif  // PLUMBLINE_KERNELS_TENSOR_SCAN_H_
