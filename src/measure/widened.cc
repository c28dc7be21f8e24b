#include "measure/widened.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/kernel_table.h"
#include "tensor/element_value.h"

namespace plumbline::measure {
namespace {

template <class T>
void WidenFrom(const std::byte* data, size_t count, double* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<double>(LoadAs<T>(data + i * sizeof(T)));
  }
}

void WidenByFloat(DType dtype, const std::byte* data, size_t count, double* out) {
  constexpr size_t kBlock = 1024;
  std::array<float, kBlock> floats;
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t size = std::min(kBlock, count - at);
    kernels::ActiveTable().to_float(dtype, data + at * InfoOf(dtype).size_bytes, size,
                                    floats.data());
    for (size_t i = 0; i < size; ++i) out[at + i] = static_cast<double>(floats[i]);
  }
}

}  // namespace

void Widen(DType dtype, const std::byte* data, size_t count, double* out) {
  switch (dtype) {
    case DType::kFloat64:
      std::memcpy(out, data, count * sizeof(double));
      return;
    case DType::kFloat32:
      return WidenFrom<float>(data, count, out);
    case DType::kInt32:
      return WidenFrom<int32_t>(data, count, out);
    case DType::kUInt32:
      return WidenFrom<uint32_t>(data, count, out);
    case DType::kInt64:
      return WidenFrom<int64_t>(data, count, out);
    case DType::kUInt64:
      return WidenFrom<uint64_t>(data, count, out);
    default:
      WidenByFloat(dtype, data, count, out);
  }
}

}  // namespace plumbline::measure
