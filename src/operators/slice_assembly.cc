#include "operators/slice_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "load/derived_tensor.h"
#include "operators/operator_tensors.h"
#include "tensor/device_blocks.h"
#include "tensor/device_layout.h"
#include "tensor/strided_copy.h"

namespace plumbline::operators {

namespace {

// The layout of the golden side: as `rule` has it, or NHWC in place of NCHW (and the other way
// round) where only this order gives the array's own sizes.
std::optional<PlainLayout> LayoutOf(const PlainLayout& rule, const Shape& sizes) {
  if (PlainAxes(rule.format).size() != sizes.size()) return std::nullopt;
  if (sizes == rule.sizes) return rule;
  for (const DeviceFormat other : {DeviceFormat::kNCHW, DeviceFormat::kNHWC}) {
    const bool is_image = rule.format == DeviceFormat::kNCHW || rule.format == DeviceFormat::kNHWC;
    if (is_image && other != rule.format && SizesIn(rule.format, rule.sizes, other) == sizes) {
      return PlainLayout{other, sizes};
    }
  }
  return PlainLayout{rule.format, sizes};
}

// The plain layout that a tensor has, or stands for by its own facts.
std::optional<PlainLayout> PlainFacts(const acl::DumpedTensor& tensor) {
  if (auto own = OwnLayout(tensor)) return own;
  const auto format = static_cast<DeviceFormat>(tensor.format);
  const std::optional<Shape> sizes = acl::KnownShape(tensor.shape);
  if (!sizes || PlainAxes(format).size() != sizes->size() || sizes->empty()) return std::nullopt;
  return PlainLayout{format, *sizes};
}

// What the rule file says; its sizes may be those of my tensor.
std::optional<PlainLayout> RuleOf(const GoldenTensor& golden,
                                  const std::optional<PlainLayout>& mine) {
  if (!golden.format) return std::nullopt;
  PlainLayout rule{*golden.format, golden.sizes};
  if (rule.sizes.empty() && mine) {
    rule.sizes = SizesIn(mine->format, mine->sizes, rule.format).value_or(Shape{});
  }
  return rule;
}

Result<LaidOut> InLayoutOf(const acl::DumpedTensor& mine, const std::optional<PlainLayout>& layout,
                           UserCode* own = nullptr) {
  LaidOut result;
  PL_TRY_ASSIGN(result.elements, PlainElements(mine, layout, own));
  result.format = layout ? layout->format : static_cast<DeviceFormat>(mine.format);
  return result;
}

// Whether each size of `coarse` is the product of the next sizes of `fine`.
bool MergesInto(const Shape& fine, const Shape& coarse) {
  size_t at = 0;
  for (const int64_t wanted : coarse) {
    int64_t product = 1;
    while (at < fine.size() && product < wanted) product *= fine[at++];
    if (product != wanted) return false;
  }
  return at == fine.size();
}

}  // namespace

Result<LaidOut> LikeGolden(const acl::DumpedTensor& mine, const GoldenTensor& golden,
                           const Shape& golden_sizes, UserCode* own) {
  const auto format = static_cast<DeviceFormat>(mine.format);
  const std::optional<PlainLayout> facts = PlainFacts(mine);
  const std::optional<PlainLayout> rule = RuleOf(golden, facts);
  std::optional<PlainLayout> wanted = rule ? LayoutOf(*rule, golden_sizes) : std::nullopt;
  if (wanted && HasConverter(own, mine, wanted->format)) return InLayoutOf(mine, wanted, own);
  if (!wanted) {
    // Matrices in blocks need nothing but the sizes.
    const PlainLayout matrices{DeviceFormat::kND, golden_sizes};
    if (!facts && format == DeviceFormat::kFractalNZ && IsExactly(mine, matrices)) {
      return InLayoutOf(mine, matrices);
    }
    // Without a word of the rule file, the golden sizes may still be mine in another order.
    if (!facts) return InLayoutOf(mine, std::nullopt);
    wanted = LayoutOf(*facts, golden_sizes);
    if (!wanted || wanted->format == facts->format) return InLayoutOf(mine, facts);
  }
  if (!BlockedAxes(format).empty()) {
    // Sizes that would cut more than padding off are no counterpart.
    return InLayoutOf(mine, IsExactly(mine, *wanted) ? wanted : OwnLayout(mine));
  }
  LaidOut result{{}, format};
  PL_TRY_ASSIGN(result.elements, acl::ElementsOf(mine));
  const bool is_other_order = PlainAxes(format).size() == result.elements.sizes.size() &&
                              !PlainAxes(format).empty() && format != wanted->format;
  if (!is_other_order) return result;
  PL_TRY_ASSIGN(result.elements, Reordered(std::move(result.elements), format, *wanted));
  result.format = wanted->format;
  return result;
}

bool HaveSameOrder(const LaidOut& mine, const Shape& golden_sizes) {
  const Shape& sizes = mine.elements.sizes;
  if (sizes == golden_sizes) return true;
  if (!BlockedAxes(mine.format).empty()) return false;
  if (ElementCount(sizes).value_or(-1) != ElementCount(golden_sizes).value_or(-2)) return false;
  const Shape a = load::WithoutOnes(sizes), b = load::WithoutOnes(golden_sizes);
  return a.size() < b.size() ? MergesInto(b, a) : MergesInto(a, b);
}

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

}  // namespace plumbline::operators
