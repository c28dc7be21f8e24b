// Byte order of element data.

#ifndef PLUMBLINE_FORMATS_SWAP_BYTES_H_
#define PLUMBLINE_FORMATS_SWAP_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "plumbline/tensor.h"

namespace plumbline {

// Reverses the bytes of every element of `dtype` in place; of each part, if complex.
inline void SwapElementBytes(DType dtype, std::span<std::byte> bytes) {
  const DTypeInfo& info = InfoOf(dtype);
  const size_t width = info.size_bytes / (info.kind == DTypeKind::kComplex ? 2U : 1U);
  for (; bytes.size() >= width; bytes = bytes.subspan(width)) {
    std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width));
  }
}

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_SWAP_BYTES_H_
