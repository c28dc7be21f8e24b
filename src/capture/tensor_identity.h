// Whether a tensor is still what it was, told without reading all of it.

#ifndef PLUMBLINE_CAPTURE_TENSOR_IDENTITY_H_
#define PLUMBLINE_CAPTURE_TENSOR_IDENTITY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/tensor.h"

namespace plumbline::capture {

struct TensorIdentity {
  static constexpr int64_t kNoVersion = -1;  // tensors made in inference mode, other frameworks

  const std::byte* data = nullptr;
  int64_t version = kNoVersion;  // the framework's count of writes
  uint64_t geometry = 0;         // hash of dtype, sizes and strides
  uint64_t sample = 0;           // hash of sixteen elements; 0 on a device
  bool operator==(const TensorIdentity&) const = default;
};

// `on_host`: the memory may be read.
TensorIdentity IdentityOf(const TensorView& view, bool on_host, int64_t version);

// A buffer of a module (the running statistics of a normalisation, say) at one moment. Holds no
// tensor.
struct BufferState {
  const void* tensor = nullptr;  // compared, never read; null: absent
  TensorIdentity identity;
  bool is_sampled = false;  // reads of its memory tell whether it changed
  bool operator==(const BufferState&) const = default;
};
// A module's own buffers, in its order, absent ones too.
using BufferStates = std::vector<BufferState>;

// Which buffers are others than before, by position in `now`; empty: none. One on a device is taken
// for changed if another of the module is: kernels need not count their writes.
std::vector<bool> ChangedBuffers(const BufferStates& before, const BufferStates& now);

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_TENSOR_IDENTITY_H_
