#include "tensor/block_gather.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace plumbline {
namespace {

constexpr size_t kContiguousChunkBytes = size_t{32} << 10;
constexpr size_t kChunkStep = 1024;

// Elements of `Bytes` bytes as plain values, so that one element is one load and one store.
template <size_t Bytes>
struct Element {
  std::byte bytes[Bytes];
};

// A rows x columns block at `in`, any strides in bytes, to be row-major at `out`.
struct Tile {
  const std::byte* in;
  int64_t row_stride;
  int64_t column_stride;
  std::byte* out;
  size_t rows;
  size_t columns;
};

// Part of a row: `count` elements from column `first` on.
template <size_t Bytes>
void CopyRow(const Tile& tile, size_t row, size_t first, size_t count) {
  const std::byte* from = tile.in + static_cast<int64_t>(row) * tile.row_stride +
                          static_cast<int64_t>(first) * tile.column_stride;
  std::byte* to = tile.out + (row * tile.columns + first) * Bytes;
  for (size_t c = 0; c < count; ++c) {
    Element<Bytes> e;
    std::memcpy(&e, from + static_cast<int64_t>(c) * tile.column_stride, Bytes);
    std::memcpy(to + c * Bytes, &e, Bytes);
  }
}

template <size_t Bytes>
void CopyTile(const Tile& tile) {
  if (tile.column_stride == static_cast<int64_t>(Bytes)) {
    for (size_t r = 0; r < tile.rows; ++r) {
      std::memcpy(tile.out + r * tile.columns * Bytes,
                  tile.in + static_cast<int64_t>(r) * tile.row_stride, tile.columns * Bytes);
    }
    return;
  }
  // Transposed input: walk small squares, so that a cache line of the input is used up while it
  // is in L1, although the output is row-major.
  const bool transposed = tile.rows > 1 && std::abs(tile.row_stride) < std::abs(tile.column_stride);
  const size_t step_rows = transposed ? 64 / Bytes : tile.rows;
  const size_t step_columns = transposed ? 16 : tile.columns;
  for (size_t r0 = 0; r0 < tile.rows; r0 += step_rows) {
    const size_t r1 = std::min(tile.rows, r0 + step_rows);
    for (size_t c = 0; c < tile.columns; c += step_columns) {
      const size_t count = std::min(tile.columns - c, step_columns);
      for (size_t r = r0; r < r1; ++r) CopyRow<Bytes>(tile, r, c, count);
    }
  }
}

void CopyTileOf(size_t element_bytes, const Tile& tile) {
  switch (element_bytes) {
    case 1:
      return CopyTile<1>(tile);
    case 2:
      return CopyTile<2>(tile);
    case 4:
      return CopyTile<4>(tile);
    case 8:
      return CopyTile<8>(tile);
    default:
      return CopyTile<16>(tile);
  }
}

}  // namespace

BlockGather::BlockGather(const TensorView& view, std::span<std::byte> scratch)
    : data_(view.data),
      element_bytes_(InfoOf(view.dtype).size_bytes),
      remaining_(static_cast<size_t>(view.element_count())),
      scratch_(scratch.data()) {
  const size_t bytes = scratch.empty() ? kContiguousChunkBytes : scratch.size();
  chunk_elements_ = std::max(kChunkStep, bytes / element_bytes_ / kChunkStep * kChunkStep);
  if (remaining_ != 0) MergeDimensions(view);
}

void BlockGather::MergeDimensions(const TensorView& view) {
  const auto size_bytes = static_cast<int64_t>(element_bytes_);
  // Slot 0 stays free for an outer dimension of size 1 in case only one dimension remains.
  sizes_[0] = 1;
  strides_[0] = 0;
  size_t used = 1;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == 1) continue;
    const int64_t stride = view.strides[i] * size_bytes;
    if (used > 1 && strides_[used - 1] == stride * view.sizes[i]) {
      sizes_[used - 1] *= view.sizes[i];
      strides_[used - 1] = stride;
      continue;
    }
    sizes_[used] = view.sizes[i];
    strides_[used] = stride;
    ++used;
  }
  contiguous_ = used == 1 || (used == 2 && strides_[1] == size_bytes);
  if (used == 1) {
    sizes_[1] = 1;
    strides_[1] = size_bytes;
    used = 2;
  }
  dims_ = used;
  std::fill_n(index_.begin(), dims_, 0);
}

void BlockGather::Select(size_t first, size_t count) {
  remaining_ = count;
  if (count == 0) return;
  if (contiguous_) {
    data_ += first * element_bytes_;
    return;
  }
  for (size_t i = dims_; i-- > 0;) {
    const auto size = static_cast<size_t>(sizes_[i]);
    index_[i] = static_cast<int64_t>(first % size);
    first /= size;
  }
}

std::span<const std::byte> BlockGather::Next() {
  if (remaining_ == 0) return {};
  const size_t count = std::min(remaining_, chunk_elements_);
  const size_t bytes = count * element_bytes_;
  if (contiguous_) {
    const std::byte* chunk = data_;
    data_ += bytes;
    remaining_ -= count;
    return {chunk, bytes};
  }
  Gather(scratch_, count);
  return {scratch_, bytes};
}

const std::byte* BlockGather::Address() const {
  const std::byte* at = data_;
  for (size_t i = 0; i < dims_; ++i) at += index_[i] * strides_[i];
  return at;
}

void BlockGather::Gather(std::byte* out, size_t count) {
  remaining_ -= count;
  const size_t row = dims_ - 2;
  const size_t column = dims_ - 1;
  const auto columns = static_cast<size_t>(sizes_[column]);
  while (count != 0) {
    const size_t done = static_cast<size_t>(index_[column]);
    size_t rows = 1;
    size_t elements = std::min(count, columns - done);
    if (done == 0 && count >= columns) {
      rows = std::min(count / columns, static_cast<size_t>(sizes_[row] - index_[row]));
      elements = columns;
    }
    CopyTileOf(element_bytes_, {Address(), strides_[row], strides_[column], out, rows, elements});
    out += rows * elements * element_bytes_;
    count -= rows * elements;
    Advance(elements == columns ? rows : 0, elements);
  }
}

void BlockGather::Advance(size_t rows, size_t elements) {
  const size_t row = dims_ - 2;
  const size_t column = dims_ - 1;
  if (rows == 0) {
    index_[column] += static_cast<int64_t>(elements);
    if (index_[column] < sizes_[column]) return;
    index_[column] = 0;
    rows = 1;
  }
  index_[row] += static_cast<int64_t>(rows);
  for (size_t i = row; i > 0 && index_[i] == sizes_[i]; --i) {
    index_[i] = 0;
    ++index_[i - 1];
  }
}

void CopyContiguous(const TensorView& view, std::span<std::byte> out) {
  if (out.empty()) return;
  BlockGather gather(view, {});
  if (gather.contiguous_) {
    std::memcpy(out.data(), view.data, out.size());
    return;
  }
  gather.Gather(out.data(), gather.remaining_);
}

}  // namespace plumbline
