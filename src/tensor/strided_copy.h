// Copies elements from one order of axes to another, as fast as memory allows.

#ifndef PLUMBLINE_TENSOR_STRIDED_COPY_H_
#define PLUMBLINE_TENSOR_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumbline {

// One axis of a copy: as many elements, that far apart on either side (in elements, at least 1).
struct CopyAxis {
  int64_t size = 1;
  int64_t from_stride = 1;
  int64_t to_stride = 1;
};

// A copy of a box of elements, in any order of the axes. No axis of size 0; none: one element.
struct StridedCopy {
  int64_t from_offset = 0;  // of the first element, in elements
  int64_t to_offset = 0;
  std::vector<CopyAxis> axes;

  [[nodiscard]] int64_t ElementCount() const;
};

// Runs the copy on the threads of the surrounding RunWithThreads(). Runs that are contiguous on
// both sides are moved whole, other elements as transposed squares of vector registers.
// Requires: element_bytes is 1, 2, 4, 8 or 16; every address lies in its buffer; no overlap.
void CopyStrided(const StridedCopy& copy, size_t element_bytes, const std::byte* from,
                 std::byte* to);

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_STRIDED_COPY_H_
