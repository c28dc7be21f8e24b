#include "tensor/element_value.h"

namespace plumbline {

std::vector<std::byte> StoredAsFloats(DType dtype, std::span<const std::byte> elements) {
  const size_t width = InfoOf(dtype).size_bytes;
  const size_t count = elements.size() / width;
  std::vector<std::byte> floats(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    const float value = LoadNarrow(dtype, elements.data() + i * width);
    std::memcpy(floats.data() + i * sizeof(value), &value, sizeof(value));
  }
  return floats;
}

}  // namespace plumbline
