// Tensors of other programs as DLPack describes them (dlpack.h of DLPack 0.2 to 1.3, whose layout of
// these structs is the same in all of them).

#ifndef PLUMBLINE_TENSOR_DLPACK_H_
#define PLUMBLINE_TENSOR_DLPACK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "plumbline/tensor.h"

namespace plumbline::dlpack {

struct Device {
  int32_t type;
  int32_t id;
};
inline constexpr int32_t kCpu = 1;
inline constexpr int32_t kCudaHost = 3;  // pinned memory, readable by the CPU

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // null: row-major
  uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* manager_context;
  void (*deleter)(ManagedTensor* self);  // may be null
};

inline constexpr int kMaxRank = 64;  // torch's own limit

// Nothing: an element type that plumbline does not know, or vectors of elements.
std::optional<DType> TypeOf(const DataType& type);
// The inverse; total.
DataType DataTypeOf(DType dtype);

// Where strides are put that a tensor does not give.
using Strides = std::array<int64_t, kMaxRank>;

// What `in` describes, with sizes and strides borrowed from it or from `own`. Nothing: an element
// type that TypeOf() does not know, or more than kMaxRank dimensions. Looks at no element: whether
// the memory may be read is told by IsOnHost().
std::optional<TensorView> ViewOf(const Tensor& in, Strides& own);
inline bool IsOnHost(const Tensor& in) {
  return in.device.type == kCpu || in.device.type == kCudaHost;
}

}  // namespace plumbline::dlpack

#endif  // PLUMBLINE_TENSOR_DLPACK_H_
