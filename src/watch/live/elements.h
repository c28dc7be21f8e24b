// The elements of a tensor as numbers, part by part.

#ifndef PLUMBLINE_WATCH_LIVE_ELEMENTS_H_
#define PLUMBLINE_WATCH_LIVE_ELEMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "kernels/kernel_table.h"
#include "plumbline/tensor.h"
#include "tensor/block_gather.h"

namespace plumbline::watch {

// Yields the elements of a view in row-major order, in double. float64 and what float32 holds is
// exact, integers of more than 24 bits are rounded to float32; complex elements give their modulus.
// The view's memory must outlive the object. Never allocates.
class Elements {
 public:
  explicit Elements(const TensorView& view) : dtype_(view.dtype), gather_(view, scratch_) {}

  // The next ones, at most `most`; empty at the end.
  std::span<const double> Next(size_t most) {
    if (chunk_.empty()) chunk_ = gather_.Next();
    if (chunk_.empty()) return {};
    const size_t element = InfoOf(dtype_).size_bytes;
    const size_t count = std::min({most, chunk_.size() / element, kPart});
    if (dtype_ == DType::kFloat64) {
      std::memcpy(wide_, chunk_.data(), count * element);
    } else {
      kernels::ActiveTable().to_float(dtype_, chunk_.data(), count, narrow_);
      std::copy_n(narrow_, count, wide_);
    }
    chunk_ = chunk_.subspan(count * element);
    return {wide_, count};
  }

 private:
  static constexpr size_t kPart = 1024;
  DType dtype_;
  alignas(64) std::byte scratch_[BlockGather::kMinScratchBytes];
  alignas(64) float narrow_[kPart];
  alignas(64) double wide_[kPart];
  BlockGather gather_;
  std::span<const std::byte> chunk_;
};

// Calls take(first, second, count) with the elements of two views of one size, in step.
template <class Take>
void VisitPairs(const TensorView& first, const TensorView& second, const Take& take) {
  Elements ones(first);
  Elements others(second);
  std::span<const double> one, other;
  for (auto left = static_cast<size_t>(first.element_count()); left > 0;) {
    if (one.empty()) one = ones.Next(left);
    if (other.empty()) other = others.Next(left);
    const size_t part = std::min(one.size(), other.size());
    if (part == 0) return;
    take(one.data(), other.data(), part);
    one = one.subspan(part);
    other = other.subspan(part);
    left -= part;
  }
}

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_ELEMENTS_H_
