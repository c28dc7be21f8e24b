#include "measure/widened.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/kernel_table.h"

namespace plumbline::measure {
namespace {

template <class T>
void WidenFrom(const std::byte* data, size_t count, double* out) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(value);
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
    default: {
      std::array<float, kWidenedBlock> floats;
      kernels::ActiveTable().to_float(dtype, data, count, floats.data());
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(floats[i]);
    }
  }
}

}  // namespace plumbline::measure
