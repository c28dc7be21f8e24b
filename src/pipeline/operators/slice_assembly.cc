#include "pipeline/operators/slice_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tensor/device_shape.h"
#include "tensor/strided_copy.h"

namespace plumbline::pipeline {
namespace {

using Parts = std::vector<acl::Elements>;
using Starts = std::vector<Shape>;

// The dimension along which the most boxes begin at places of their own.
size_t WidestAxis(const Starts& starts) {
  size_t widest = 0, most = 0;
  for (size_t axis = 0; axis < starts.front().size(); ++axis) {
    std::set<int64_t> places;
    for (const Shape& start : starts) places.insert(start[axis]);
    if (places.size() > most) widest = axis;
    most = std::max(most, places.size());
  }
  return widest;
}

// Two boxes that have a point in common; nothing if none have.
std::optional<std::pair<size_t, size_t>> FindOverlap(const Parts& parts, const Starts& starts) {
  if (starts.front().empty()) {
    return parts.size() > 1 ? std::optional(std::pair<size_t, size_t>(0, 1)) : std::nullopt;
  }
  const auto meet = [&](size_t a, size_t b) {
    for (size_t i = 0; i < starts[a].size(); ++i) {
      if (starts[a][i] + parts[a].sizes[i] <= starts[b][i] ||
          starts[b][i] + parts[b].sizes[i] <= starts[a][i]) {
        return false;
      }
    }
    return true;
  };
  const size_t axis = WidestAxis(starts);
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return starts[i][axis]; });
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t end = starts[order[i]][axis] + parts[order[i]].sizes[axis];
    for (size_t k = i + 1; k < order.size() && starts[order[k]][axis] < end; ++k) {
      if (meet(order[i], order[k])) return std::minmax(order[i], order[k]);
    }
  }
  return std::nullopt;
}

Error Wrong(const std::string& what) { return {ErrorCode::kCorrupt, "the parts " + what}; }

// The sizes that the boxes span.
Result<Shape> SizesOf(const Parts& parts, const Starts& starts) {
  constexpr int64_t kMost = int64_t{1} << 48;  // elements that a device has room for
  Shape whole(parts.front().sizes.size(), 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape& sizes = parts[i].sizes;
    if (sizes.size() != whole.size() || starts[i].size() != sizes.size()) {
      return Wrong(fmt::format("have other dimensions than the output: part {} is {} at {}", i,
                               ShapeText(sizes), ShapeText(starts[i])));
    }
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (starts[i][axis] < 0 || starts[i][axis] > kMost || sizes[axis] > kMost) {
        return Wrong(
            fmt::format("begin outside of the output: part {} at {}", i, ShapeText(starts[i])));
      }
      whole[axis] = std::max(whole[axis], starts[i][axis] + sizes[axis]);
    }
  }
  return whole;
}

// Parts differ in the dimensions in which they are cut alone.
Status CheckUncut(const Parts& parts, const std::vector<size_t>& axes) {
  const acl::Elements& first = parts.front();
  for (const size_t axis : axes) {
    if (axis < first.sizes.size()) continue;
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the parts are cut in dimension {} (expected one below {})", axis,
                             first.sizes.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape expected = first.sizes;
    for (const size_t axis : axes) {
      if (axis < parts[i].sizes.size()) expected[axis] = parts[i].sizes[axis];
    }
    if (parts[i].sizes == expected && parts[i].dtype == first.dtype) continue;
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("part {} is {} {} (expected {} {})", i, InfoOf(parts[i].dtype).name,
                    ShapeText(parts[i].sizes), InfoOf(first.dtype).name, ShapeText(expected)));
  }
  return {};
}

// From a contiguous part to its place in the whole. Requires: the part has elements.
StridedCopy CopyOfPart(const Shape& part, const Shape& start, const Shape& whole) {
  const std::vector<int64_t> from = ContiguousStrides(part), to = ContiguousStrides(whole);
  StridedCopy copy;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    copy.to_offset += start[axis] * to[axis];
    copy.axes.push_back({part[axis], from[axis], to[axis]});
  }
  return copy;
}

// The same way back.
StridedCopy BackOf(StridedCopy copy) {
  std::swap(copy.from_offset, copy.to_offset);
  for (CopyAxis& axis : copy.axes) std::swap(axis.from_stride, axis.to_stride);
  return copy;
}

}  // namespace

std::vector<size_t> CutAxes(const Shape& cuts) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i] != 1) axes.push_back(i);
  }
  return axes;
}

Result<acl::Elements> ConcatenateParts(const Parts& parts, size_t axis) {
  PL_TRY(CheckUncut(parts, {axis}));
  acl::Elements whole;
  whole.dtype = parts.front().dtype;
  whole.sizes = parts.front().sizes;
  whole.sizes[axis] = 0;
  for (const acl::Elements& part : parts) whole.sizes[axis] += part.sizes[axis];
  size_t rows = 1;
  for (size_t i = 0; i < axis; ++i) rows *= static_cast<size_t>(whole.sizes[i]);
  size_t bytes_of_all = 0;
  for (const acl::Elements& part : parts) bytes_of_all += part.bytes.size();
  if (bytes_of_all == 0) return whole;  // there may be any number of rows
  whole.owned.reserve(bytes_of_all);
  for (size_t row = 0; row < rows; ++row) {
    for (const acl::Elements& part : parts) {
      const size_t bytes = part.bytes.size() / rows;
      const auto run = part.bytes.subspan(row * bytes, bytes);
      whole.owned.insert(whole.owned.end(), run.begin(), run.end());
    }
  }
  return whole;
}

Result<acl::Elements> PlaceParts(const Parts& parts, const Starts& starts,
                                 const std::vector<size_t>& axes) {
  PL_TRY(CheckUncut(parts, axes));
  acl::Elements whole;
  whole.dtype = parts.front().dtype;
  PL_TRY_ASSIGN(whole.sizes, SizesOf(parts, starts));
  size_t bytes = 0;
  for (const acl::Elements& part : parts) bytes += part.bytes.size();
  const size_t width = InfoOf(whole.dtype).size_bytes;
  if (const auto pair = FindOverlap(parts, starts)) {
    return Wrong(fmt::format("do not fill the output: the parts {} at {} and {} at {} overlap",
                             pair->first, ShapeText(starts[pair->first]), pair->second,
                             ShapeText(starts[pair->second])));
  }
  const Result<int64_t> count = ElementCount(whole.sizes);
  if (!count || static_cast<size_t>(*count) != bytes / width) {
    return Wrong(fmt::format("do not fill the output {}: they have {} elements",
                             ShapeText(whole.sizes), bytes / width));
  }
  whole.owned.resize(bytes);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes.empty()) continue;
    const StridedCopy copy = CopyOfPart(parts[i].sizes, starts[i], whole.sizes);
    CopyStrided(copy, width, parts[i].bytes.data(), whole.owned.data());
  }
  return whole;
}

Result<acl::Elements> CoverParts(const Parts& parts, const Starts& starts) {
  acl::Elements whole;
  whole.dtype = parts.front().dtype;
  PL_TRY_ASSIGN(whole.sizes, SizesOf(parts, starts));
  const size_t width = InfoOf(whole.dtype).size_bytes;
  size_t most = 0;
  for (const acl::Elements& part : parts) {
    if (part.dtype != whole.dtype) return Wrong("are of several types");
    most += part.bytes.size() / width;
  }
  const Result<int64_t> count = ElementCount(whole.sizes);
  if (!count || static_cast<size_t>(*count) > most) {
    return Wrong(fmt::format("do not fill the whole {}: they have {} elements",
                             ShapeText(whole.sizes), most));
  }
  const auto elements = static_cast<size_t>(*count);
  whole.owned.resize(elements * width);
  std::vector<std::byte> filled(elements), ones;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes.empty()) continue;
    const StridedCopy copy = CopyOfPart(parts[i].sizes, starts[i], whole.sizes);
    CopyStrided(copy, width, parts[i].bytes.data(), whole.owned.data());
    ones.assign(parts[i].bytes.size() / width, std::byte{1});
    CopyStrided(copy, 1, ones.data(), filled.data());
  }
  if (std::ranges::count(filled, std::byte{0}) > 0) {
    return Wrong(fmt::format("leave holes in the whole {}", ShapeText(whole.sizes)));
  }
  // Later parts lie over earlier ones: each is there whole only if they agree.
  std::vector<std::byte> again;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes.empty()) continue;
    again.resize(parts[i].bytes.size());
    CopyStrided(BackOf(CopyOfPart(parts[i].sizes, starts[i], whole.sizes)), width,
                whole.owned.data(), again.data());
    if (std::ranges::equal(again, parts[i].bytes)) continue;
    return Wrong(fmt::format("overlap in different elements, those of part {} with later ones", i));
  }
  return whole;
}

}  // namespace plumbline::pipeline
