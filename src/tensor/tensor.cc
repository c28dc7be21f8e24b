#include "plumbline/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace plumbline {

Result<int64_t> ElementCount(std::span<const int64_t> sizes) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t size : sizes) {
    if (size < 0) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("shape: dimension is {} (expected 0 or more)", size));
    }
    // A later zero makes the product 0, so an overflow counts only at the end.
    if (size == 0) count = 0;
    if (count != 0 && __builtin_mul_overflow(count, size, &count)) {
      overflow = true;
      count = 1;
    }
  }
  if (overflow && count != 0) {
    return Error(ErrorCode::kCorrupt, "shape: number of elements exceeds 2^63 - 1");
  }
  return count;
}

std::vector<int64_t> ContiguousStrides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    // Wraps only for shapes that ElementCount() refuses or that hold no element.
    if (sizes[i] != 0 && __builtin_mul_overflow(stride, sizes[i], &stride)) stride = 0;
  }
  return strides;
}

namespace {

bool HasZero(std::span<const int64_t> sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

}  // namespace

int64_t TensorView::element_count() const {
  // The sizes beside a zero may be anything; all others were checked by ElementCount().
  if (HasZero(sizes)) return 0;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

size_t TensorView::size_bytes() const {
  return static_cast<size_t>(element_count()) * InfoOf(dtype).size_bytes;
}

bool TensorView::is_contiguous() const {
  if (HasZero(sizes)) return true;
  int64_t stride = 1;
  bool ordered = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    ordered = ordered && strides[i] == stride;
    stride *= sizes[i];
  }
  return ordered;
}

Result<Tensor> Tensor::Copy(const TensorView& view) {
  PL_TRY_ASSIGN(const int64_t count, ElementCount(view.sizes));
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), size_t{InfoOf(view.dtype).size_bytes},
                             &bytes)) {
    return Error(ErrorCode::kCorrupt, "shape: number of bytes exceeds 2^64 - 1");
  }
  Tensor tensor;
  tensor.dtype_ = view.dtype;
  // The only statement here that allocates in proportion to input; everything else is tiny.
  std::byte* memory = bytes == 0 ? nullptr : new (std::nothrow) std::byte[bytes];
  if (bytes != 0 && memory == nullptr) {
    return Error(ErrorCode::kInternal, fmt::format("tensor copy: no memory for {} bytes", bytes));
  }
  tensor.data_.reset(memory);
  tensor.sizes_.assign(view.sizes.begin(), view.sizes.end());
  tensor.strides_ = ContiguousStrides(view.sizes);
  CopyContiguous(view, {memory, bytes});
  return tensor;
}

TensorView Tensor::view() const { return {dtype_, data_.get(), sizes_, strides_}; }

}  // namespace plumbline
