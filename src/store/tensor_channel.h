// Where entries and tensors of a recording go that are sent to another machine instead of being
// written to an output directory (online pre-check).

#ifndef PLUMBLINE_STORE_TENSOR_CHANNEL_H_
#define PLUMBLINE_STORE_TENSOR_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plumbline/tensor.h"
#include "store/tensor_writer.h"

namespace plumbline {

// A tensor of an entry: its elements, contiguous.
struct ChannelTensor {
  std::string name;  // as the entry has it under data_name
  DType dtype = DType::kFloat32;
  Shape sizes;
  TensorBuffer buffer;
};

// Thread-safe. Nothing here waits for the other machine but WaitForRoom(), and nothing fails: what
// cannot be sent is counted.
class TensorChannel {
 public:
  TensorChannel() = default;
  TensorChannel(const TensorChannel&) = delete;
  TensorChannel& operator=(const TensorChannel&) = delete;
  virtual ~TensorChannel() = default;

  // There was no memory for a tensor: waits until something has been taken by the other machine.
  // False: it is not to be waited for, the entry is dropped.
  virtual bool WaitForRoom() = 0;
  // An entry with its tensors. `is_whole`: all of them are there; else it is dropped.
  virtual void AddEntry(int64_t step, std::span<const std::byte> packed,
                        std::vector<ChannelTensor> tensors, bool is_whole) = 0;
  // Nothing more of this step.
  virtual void EndStep(int64_t step) = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_TENSOR_CHANNEL_H_
