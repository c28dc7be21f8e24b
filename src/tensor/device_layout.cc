#include "tensor/device_layout.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tensor/device_blocks.h"

namespace plumbline {
namespace {

// No tensor is larger; it keeps sums of offsets in range whatever a file says.
constexpr int64_t kMostElements = int64_t{1} << 48;

Error WrongSizes(const std::string& what, const std::string& expected, const Shape& got) {
  return {ErrorCode::kCorrupt,
          what + ": wrong sizes (expected " + expected + ", got " + ShapeText(got) + ")."};
}

Error NoConversion(const LayoutRequest& request) {
  return {ErrorCode::kUnsupported, "Not supported from " + DeviceFormatName(request.from.format) +
                                       " to " + DeviceFormatName(request.to) + "."};
}

bool IsBlocked(DeviceFormat format) { return !BlockedAxes(format).empty(); }

// Whether the plain format says where the axes of the blocked one lie.
bool Fits(DeviceFormat blocked, DeviceFormat plain) {
  if (plain != DeviceFormat::kND) return !PlainAxes(plain).empty();
  return blocked == DeviceFormat::kFractalNZ || blocked == DeviceFormat::kNDC1HWC0;
}

Result<size_t> CountOf(const Shape& sizes) {
  PL_TRY_ASSIGN(const int64_t count, ElementCount(sizes));
  if (count > kMostElements) return WrongSizes("tensor", "at most 2^48 elements", sizes);
  return static_cast<size_t>(count);
}

// `sizes` brought to `rank` sizes by ones that are added behind or left out.
std::optional<Shape> WithRank(Shape sizes, size_t rank) {
  for (size_t i = sizes.size(); i-- > 0 && sizes.size() > rank;) {
    if (sizes[i] == 1) sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (sizes.size() > rank) return std::nullopt;
  sizes.resize(rank, 1);
  return sizes;
}

std::vector<PlainAxis> NamedAxes(std::string_view names, const Shape& sizes) {
  const std::vector<int64_t> strides = ContiguousStrides(sizes);
  std::vector<PlainAxis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({names[i], sizes[i], strides[i]});
  return axes;
}

// Names for the sizes of matrices: 'a', 'b', ..., 'H', 'W'.
std::string MatrixNames(size_t rank) {
  std::string names;
  for (size_t i = 0; i + 2 < rank; ++i) names += static_cast<char>('a' + i);
  return names + "HW";
}

// The plain sizes as matrices that a FRACTAL_NZ tensor of `device` sizes can hold: the same rank,
// or ones added in front or left out.
std::optional<Shape> MatrixSizes(const Shape& plain, const Shape& device) {
  if (device.size() < 4) return std::nullopt;
  const size_t rank = device.size() - 2;
  Shape from_front = plain;
  while (from_front.size() > rank && from_front.front() == 1) from_front.erase(from_front.begin());
  if (from_front.size() < rank) from_front.insert(from_front.begin(), rank - from_front.size(), 1);
  for (const std::optional<Shape>& sizes : {std::optional(from_front), WithRank(plain, rank)}) {
    if (!sizes || sizes->size() != rank) continue;
    const Result<Shape> exact = DeviceShape(DeviceFormat::kFractalNZ, *sizes, device.back());
    if (exact && *exact == device) return sizes;
  }
  return std::nullopt;
}

Error WrongMatrix(const Shape& plain, const Shape& device) {
  std::string expected = "four sizes or more";
  if (device.size() >= 4) {
    Shape most(device.begin(), device.end() - 4);
    const auto* last = &device.back();
    most.insert(most.end(), {last[-2] * last[-1], last[-3] * last[0]});
    expected = ShapeText(most) + " or less than a block below in the last two";
  }
  return WrongSizes("plain sizes of FRACTAL_NZ " + ShapeText(device), expected, plain);
}

// The plain side of a blocked tensor: its axes, named, and those that it lacks as axes of one.
Result<std::vector<PlainAxis>> AxesBeside(DeviceFormat blocked, const Shape& device,
                                          DeviceFormat plain, const Shape& sizes) {
  if (blocked == DeviceFormat::kFractalNZ) {
    const std::optional<Shape> matrix = MatrixSizes(sizes, device);
    if (!matrix) return WrongMatrix(sizes, device);
    return NamedAxes(MatrixNames(matrix->size()), *matrix);
  }
  const std::string_view wanted = BlockedAxes(blocked);
  const std::string_view names = plain == DeviceFormat::kND ? wanted : PlainAxes(plain);
  const std::optional<Shape> ranked = WithRank(sizes, names.size());
  if (!ranked) return WrongSizes(DeviceFormatName(plain), std::string(names), sizes);
  std::vector<PlainAxis> axes;
  for (const PlainAxis& axis : NamedAxes(names, *ranked)) {
    if (wanted.find(axis.name) != std::string_view::npos) {
      axes.push_back(axis);
    } else if (axis.size != 1) {
      return WrongSizes(DeviceFormatName(plain), "1 along " + std::string(1, axis.name), sizes);
    }
  }
  for (const char name : wanted) {
    if (names.find(name) != std::string_view::npos) continue;
    if (!device.empty() && TellsPlainSizes(blocked)) {
      PL_TRY_ASSIGN(const int64_t room, RoomAlong(blocked, device, name));
      if (room != 1) {
        return WrongSizes(DeviceFormatName(blocked) + " as " + DeviceFormatName(plain),
                          "1 along " + std::string(1, name), device);
      }
    }
    axes.push_back({name, 1, 1});
  }
  return axes;
}

// Axis by axis, for a box whose blocked axis has been cut to whole blocks.
StridedCopy CopyOf(const PlacedBox& box, bool to_device) {
  StridedCopy copy;
  copy.from_offset = to_device ? box.plain_offset : box.device_offset;
  copy.to_offset = to_device ? box.device_offset : box.plain_offset;
  for (const PlacedAxis& axis : box.axes) {
    copy.axes.push_back(to_device ? CopyAxis{axis.size, axis.plain_stride, axis.stride}
                                  : CopyAxis{axis.size, axis.stride, axis.plain_stride});
  }
  return copy;
}

// Part of a blocked axis: elements `first` to `first + size`, all of one block or whole blocks.
PlacedBox PartOf(const PlacedBox& box, size_t split, int64_t first, int64_t size) {
  PlacedBox part = box;
  const PlacedAxis axis = box.axes[split];
  const int64_t place = axis.phase + first;
  part.plain_offset += first * axis.plain_stride;
  part.device_offset += place / axis.block * axis.block_stride + place % axis.block * axis.stride;
  const int64_t inner = std::min(size, axis.block);
  part.axes[split] = {inner, axis.plain_stride, axis.stride, 0, 0, 0};
  part.axes.push_back({size / inner, inner * axis.plain_stride, axis.block_stride, 0, 0, 0});
  return part;
}

// Cuts the blocked axis of a box into the start that lies within a block, whole blocks and the end.
void AppendCopies(const PlacedBox& box, bool to_device, std::vector<StridedCopy>& copies) {
  const auto split = std::find_if(box.axes.begin(), box.axes.end(),
                                  [](const PlacedAxis& axis) { return axis.block != 0; });
  if (split == box.axes.end()) {
    copies.push_back(CopyOf(box, to_device));
    return;
  }
  const auto index = static_cast<size_t>(split - box.axes.begin());
  const int64_t block = split->block;
  const int64_t head = std::min(split->size, (block - split->phase % block) % block);
  const int64_t whole = (split->size - head) / block * block;
  const int64_t tail = split->size - head - whole;
  if (head != 0) copies.push_back(CopyOf(PartOf(box, index, 0, head), to_device));
  if (whole != 0) copies.push_back(CopyOf(PartOf(box, index, head, whole), to_device));
  if (tail != 0) copies.push_back(CopyOf(PartOf(box, index, head + whole, tail), to_device));
}

// Everything that a blocked tensor holds, as sizes of a plain format.
Result<Shape> Uncropped(const TensorLayout& from, DeviceFormat to) {
  if (!TellsPlainSizes(from.format)) {
    return Error(ErrorCode::kInvalidArgument,
                 DeviceFormatName(from.format) + " " + ShapeText(from.sizes) +
                     ": the plain sizes are needed, the format does not tell them.");
  }
  const std::string_view axes = BlockedAxes(from.format);
  const std::string_view names = to == DeviceFormat::kND ? axes : PlainAxes(to);
  Shape sizes;
  for (const char name : names) {
    if (axes.find(name) == std::string_view::npos) {
      sizes.push_back(1);
      continue;
    }
    PL_TRY_ASSIGN(const int64_t room, RoomAlong(from.format, from.sizes, name));
    sizes.push_back(room);
  }
  return sizes;
}

// The sizes of a plain tensor in the order of a blocked format's axes.
Result<Shape> DefaultBlocks(const LayoutRequest& request) {
  if (request.to == DeviceFormat::kFractalNZ) {
    return DeviceShape(request.to, request.from.sizes, request.c0);
  }
  PL_TRY_ASSIGN(const std::vector<PlainAxis> axes,
                AxesBeside(request.to, {}, request.from.format, request.from.sizes));
  Shape host;
  for (const char name : BlockedAxes(request.to)) {
    for (const PlainAxis& axis : axes) {
      if (axis.name == name) host.push_back(axis.size);
    }
  }
  return DeviceShape(request.to, host, request.c0, request.groups);
}

// Copies between two plain formats, cropped to the wanted sizes.
Result<StridedCopy> PlainCopy(const TensorLayout& from, DeviceFormat to, const Shape& wanted) {
  const std::string_view names = PlainAxes(from.format);
  const std::string_view to_names = PlainAxes(to);
  const std::optional<Shape> sizes = WithRank(from.sizes, names.size());
  const std::optional<Shape> to_sizes = WithRank(wanted, to_names.size());
  if (!sizes) return WrongSizes(DeviceFormatName(from.format), std::string(names), from.sizes);
  if (!to_sizes) return WrongSizes(DeviceFormatName(to), std::string(to_names), wanted);
  const std::vector<PlainAxis> source = NamedAxes(names, *sizes);
  StridedCopy copy;
  for (const PlainAxis& axis : NamedAxes(to_names, *to_sizes)) {
    const size_t at = names.find(axis.name);
    const PlainAxis found = at == std::string_view::npos ? PlainAxis{} : source[at];
    if (axis.size > found.size) {
      return WrongSizes(DeviceFormatName(to),
                        "at most " + std::to_string(found.size) + " along " + axis.name, wanted);
    }
    copy.axes.push_back({axis.size, found.stride, axis.stride});
  }
  return copy;
}

// The sizes of a plain tensor in another plain format.
Result<Shape> Permuted(const TensorLayout& from, DeviceFormat to) {
  const std::string_view names = PlainAxes(from.format);
  const std::string_view to_names = PlainAxes(to);
  const std::optional<Shape> sizes = WithRank(from.sizes, names.size());
  if (!sizes) return WrongSizes(DeviceFormatName(from.format), std::string(names), from.sizes);
  Shape result;
  for (const char name : to_names) {
    const size_t at = names.find(name);
    result.push_back(at == std::string_view::npos ? 1 : (*sizes)[at]);
  }
  PL_TRY_ASSIGN(const size_t count, CountOf(*sizes));
  PL_TRY_ASSIGN(const size_t kept, CountOf(result));
  if (kept != count) {
    return WrongSizes(DeviceFormatName(from.format) + " as " + DeviceFormatName(to),
                      "1 along axes that it lacks", from.sizes);
  }
  return result;
}

// The sizes of the result; checks that the conversion exists.
Result<Shape> ResultSizes(const LayoutRequest& request) {
  const DeviceFormat from = request.from.format;
  const DeviceFormat to = request.to;
  const bool is_wanted = !request.wanted.empty();
  if (from == to) return is_wanted ? request.wanted : request.from.sizes;
  if (IsBlocked(to)) {
    if (IsBlocked(from) || !Fits(to, from)) return NoConversion(request);
    return is_wanted ? Result<Shape>(request.wanted) : DefaultBlocks(request);
  }
  if (IsBlocked(from)) {
    if (!Fits(from, to)) return NoConversion(request);
    return is_wanted ? Result<Shape>(request.wanted) : Uncropped(request.from, to);
  }
  if (PlainAxes(from).empty() || PlainAxes(to).empty()) return NoConversion(request);
  return is_wanted ? Result<Shape>(request.wanted) : Permuted(request.from, to);
}

}  // namespace

Result<LayoutPlan> PlanLayout(const LayoutRequest& request) {
  const DeviceFormat from = request.from.format;
  LayoutPlan plan;
  PL_TRY_ASSIGN(plan.from_elements_, CountOf(request.from.sizes));
  PL_TRY_ASSIGN(plan.result_, ResultSizes(request));
  PL_TRY_ASSIGN(plan.to_elements_, CountOf(plan.result_));
  if (plan.from_elements_ == 0 || plan.to_elements_ == 0) {
    if (plan.from_elements_ == plan.to_elements_) return plan;
    return WrongSizes(DeviceFormatName(request.to), "no elements on both sides", plan.result_);
  }
  if (from == request.to) {
    if (plan.from_elements_ != plan.to_elements_) {
      return WrongSizes(DeviceFormatName(from), ShapeText(request.from.sizes), plan.result_);
    }
    plan.copies_ = {{0, 0, {{static_cast<int64_t>(plan.to_elements_), 1, 1}}}};
    return plan;
  }
  const bool to_device = IsBlocked(request.to);
  if (!to_device && !IsBlocked(from)) {
    PL_TRY_ASSIGN(StridedCopy copy, PlainCopy(request.from, request.to, plan.result_));
    plan.copies_.push_back(std::move(copy));
    return plan;
  }
  const TensorLayout result{request.to, plan.result_};
  const TensorLayout& device = to_device ? result : request.from;
  const TensorLayout& plain = to_device ? request.from : result;
  PL_TRY_ASSIGN(const std::vector<PlainAxis> axes,
                AxesBeside(device.format, device.sizes, plain.format, plain.sizes));
  PL_TRY_ASSIGN(const std::vector<PlacedBox> boxes,
                PlaceBlocks(device.format, device.sizes, axes, request.groups));
  for (const PlacedBox& box : boxes) AppendCopies(box, to_device, plan.copies_);
  return plan;
}

void LayoutPlan::Run(size_t element_bytes, std::span<const std::byte> from,
                     std::span<std::byte> to) const {
  int64_t copied = 0;
  for (const StridedCopy& copy : copies_) copied += copy.ElementCount();
  if (static_cast<size_t>(copied) != to_elements_) std::memset(to.data(), 0, to.size());
  for (const StridedCopy& copy : copies_) {
    CopyStrided(copy, element_bytes, from.data(), to.data());
  }
}

}  // namespace plumbline
