// Walks a tensor of any strides in row-major order, one contiguous run of elements at a time, so
// that several reductions can read each run while it is in cache. Used by the kernels and by
// CopyContiguous().

#ifndef PLUMBLINE_TENSOR_BLOCK_GATHER_H_
#define PLUMBLINE_TENSOR_BLOCK_GATHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plumbline/tensor.h"

namespace plumbline {

// Yields the elements of a view as successive chunks. A chunk points into the tensor when the
// elements lie there in order, and into the caller's scratch memory when they had to be gathered.
// Every chunk but the last holds the same number of elements, a multiple of 1024, whatever the
// strides. Thread-compatible; never allocates.
class BlockGather {
 public:
  static constexpr size_t kMinScratchBytes = size_t{16} << 10;  // 1024 elements of complex128

  // `scratch` must outlive the object and hold kMinScratchBytes or more; it also sets the chunk
  // size. It may be empty if `view` is contiguous: then chunks hold about 32 KiB.
  BlockGather(const TensorView& view, std::span<std::byte> scratch);

  // Restricts the walk to `count` elements from position `first` of the row-major order on.
  // Requires: nothing yielded yet, first + count <= the view's element count.
  void Select(size_t first, size_t count);

  // The next chunk, or an empty span at the end.
  std::span<const std::byte> Next();

 private:
  // Dimensions of size 1 are dropped and the element count fits int64_t, so no view needs more.
  static constexpr size_t kMaxDims = 64;
  friend void CopyContiguous(const TensorView& view, std::span<std::byte> out);

  void MergeDimensions(const TensorView& view);
  // Copies the next `count` elements to `out` and advances the position.
  void Gather(std::byte* out, size_t count);
  // Moves past `rows` whole rows, or past `elements` of the current row when `rows` is 0.
  void Advance(size_t rows, size_t elements);
  [[nodiscard]] const std::byte* Address() const;

  const std::byte* data_;
  size_t element_bytes_;
  size_t remaining_;  // elements not yet yielded
  size_t chunk_elements_;
  std::byte* scratch_;
  bool contiguous_;
  // Merged dimensions, outermost first; at least two. Strides in bytes.
  size_t dims_ = 0;
  std::array<int64_t, kMaxDims> sizes_;
  std::array<int64_t, kMaxDims> strides_;
  std::array<int64_t, kMaxDims> index_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_BLOCK_GATHER_H_
