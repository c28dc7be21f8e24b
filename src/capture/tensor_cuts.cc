#include "capture/tensor_cuts.h"

#include <algorithm>

namespace plumbline::capture {
namespace {

// Where an index of a Python slice lands in a dimension: negative ones count from its end.
int64_t Place(int64_t index, int64_t size) {
  if (index < 0) index = std::max(index, -size) + size;
  return std::min(index, size);
}

void Narrow(std::span<const int64_t> sizes, size_t dim, int64_t begin, int64_t end, Cut* cut) {
  if (cut->is_whole) {
    cut->is_whole = false;
    cut->sizes.assign(sizes.begin(), sizes.end());
    cut->begins.assign(sizes.size(), 0);
  }
  cut->begins[dim] = Place(begin, sizes[dim]);
  cut->sizes[dim] = std::max<int64_t>(Place(end, sizes[dim]) - cut->begins[dim], 0);
}

}  // namespace

TensorView Cut::Of(const TensorView& whole) const {
  if (is_whole) return whole;
  TensorView part = whole;
  part.sizes = sizes;
  // An empty part has no first element.
  if (part.element_count() == 0) return part;
  int64_t offset = 0;
  for (size_t i = 0; i < begins.size(); ++i) offset += begins[i] * whole.strides[i];
  part.data += offset * static_cast<int64_t>(InfoOf(whole.dtype).size_bytes);
  return part;
}

bool TensorCuts::UseBatch(std::span<const BatchShare> shares) {
  Rows rows;
  bool is_there = false;
  for (const BatchShare& share : shares) {
    if (share.request == request_id_) {
      is_there = true;
      rows.begin = rows.total;
      rows.end = rows.total + share.tokens;
    }
    rows.total += share.tokens;
  }
  rows_.reset();
  if (is_there) rows_ = rows;
  return is_there;
}

std::optional<size_t> TensorCuts::DimensionOfTokens(std::span<const int64_t> sizes) const {
  if (!rows_ || sizes.empty()) return std::nullopt;
  if (sizes[0] == rows_->total) return 0;
  // More dimensions mostly have heads here, and their number may be that of the tokens by chance.
  const bool has_batch_of_one = sizes[0] == 1 && (sizes.size() == 2 || sizes.size() == 3);
  if (has_batch_of_one && sizes[1] == rows_->total) return 1;
  return std::nullopt;
}

Cut TensorCuts::Of(std::span<const int64_t> sizes, bool has_tokens) const {
  Cut cut;
  for (const TensorSlice& slice : slices_) {
    const auto dim = static_cast<size_t>(slice.dim);
    if (dim >= sizes.size() || (slice.size && *slice.size != sizes[dim])) continue;
    Narrow(sizes, dim, slice.begin, slice.end.value_or(sizes[dim]), &cut);
  }
  const std::optional<size_t> dim = has_tokens ? DimensionOfTokens(sizes) : std::nullopt;
  if (dim) Narrow(sizes, *dim, rows_->begin, rows_->end, &cut);
  return cut;
}

}  // namespace plumbline::capture
