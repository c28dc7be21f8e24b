// Whole tensors from their pieces.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/digest.h"
#include "load/checkpoint.h"

namespace plumbline::load {
namespace {

Status CheckStored(const TensorPiece& piece) {
  if (!piece.storage_crc || Crc32(piece.storage) == *piece.storage_crc) return {};
  return Error(ErrorCode::kCorrupt,
               "its bytes do not have their recorded checksum. Copy the file again");
}

// Copies a contiguous run of elements into its place in a larger contiguous tensor.
class Placement {
 public:
  Placement(const Shape& whole, size_t element_bytes)
      : strides_(ContiguousStrides(whole)), element_bytes_(element_bytes) {}

  void Copy(const TensorPiece& piece, const std::byte* from, std::byte* to) const {
    if (std::find(piece.sizes.begin(), piece.sizes.end(), 0) != piece.sizes.end()) return;
    CopyDimension(piece, 0, from, to);
  }

 private:
  const std::byte* CopyDimension(const TensorPiece& piece, size_t dimension, const std::byte* from,
                                 std::byte* to) const {
    if (dimension == piece.sizes.size()) {
      std::memcpy(to, from, element_bytes_);
      return from + element_bytes_;
    }
    const int64_t begin = piece.offsets.empty() ? 0 : piece.offsets[dimension];
    const size_t step = static_cast<size_t>(strides_[dimension]) * element_bytes_;
    to += static_cast<size_t>(begin) * step;
    const auto size = static_cast<size_t>(piece.sizes[dimension]);
    if (dimension + 1 == piece.sizes.size()) {
      std::memcpy(to, from, size * element_bytes_);
      return from + size * element_bytes_;
    }
    for (size_t i = 0; i < size; ++i)
      from = CopyDimension(piece, dimension + 1, from, to + i * step);
    return from;
  }

  std::vector<int64_t> strides_;
  size_t element_bytes_;
};

}  // namespace

Result<WholeTensor> WholeTensor::Of(const CheckpointTensor& tensor) {
  if (!tensor.problem.empty()) return Error(ErrorCode::kUnsupported, tensor.problem);
  for (const TensorPiece& piece : tensor.pieces) PL_TRY(CheckStored(piece));
  WholeTensor whole;
  whole.dtype_ = tensor.dtype;
  whole.sizes_ = tensor.sizes;
  if (tensor.pieces.size() == 1 && tensor.pieces[0].sizes == tensor.sizes) {
    whole.data_ = tensor.pieces[0].data;
    whole.strides_ = tensor.pieces[0].strides;
    return whole;
  }
  PL_TRY_ASSIGN(const int64_t count, ElementCount(tensor.sizes));
  const size_t element_bytes = InfoOf(tensor.dtype).size_bytes;
  const auto elements = static_cast<size_t>(count);
  whole.own_.reset(new (std::nothrow) std::byte[elements * element_bytes]);
  if (whole.own_ == nullptr) {
    return Error(ErrorCode::kInternal, fmt::format("no memory for {} elements", count));
  }
  const Placement placement(tensor.sizes, element_bytes);
  for (const TensorPiece& piece : tensor.pieces) {
    PL_TRY_ASSIGN(const Tensor copy,
                  Tensor::Copy({tensor.dtype, piece.data, piece.sizes, piece.strides}));
    placement.Copy(piece, copy.view().data, whole.own_.get());
  }
  whole.data_ = whole.own_.get();
  whole.strides_ = ContiguousStrides(tensor.sizes);
  return whole;
}

}  // namespace plumbline::load
