#include "tensor/device_layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tensor/device_blocks.h"

namespace plumbline {

namespace {

// No tensor has as many elements; it keeps products in range whatever a file says.
constexpr int64_t kMostElements = int64_t{1} << 48;

int64_t Blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

Status CheckHost(DeviceFormat format, const Shape& host) {
  const std::string_view axes = BlockedAxes(format);
  const bool is_matrix = format == DeviceFormat::kFractalNZ;
  const bool is_rank_right = is_matrix ? host.size() >= axes.size() : host.size() == axes.size();
  if (!is_rank_right || std::any_of(host.begin(), host.end(), [](int64_t n) { return n < 1; })) {
    return Error(ErrorCode::kCorrupt, DeviceFormatName(format) +
                                          " tensor: wrong plain sizes (expected " +
                                          std::string(axes) + (is_matrix ? " last" : "") +
                                          ", all positive, got " + ShapeText(host) + ").");
  }
  PL_TRY_ASSIGN(const int64_t count, ElementCount(host));
  if (count > kMostElements) {
    return Error(ErrorCode::kCorrupt, DeviceFormatName(format) +
                                          " tensor: too many elements (expected at most 2^48, got "
                                          "plain sizes " +
                                          ShapeText(host) + ").");
  }
  return {};
}

Shape MatrixShape(const Shape& host, int64_t c0) {
  Shape sizes(host.begin(), host.end() - 2);
  sizes.insert(sizes.end(),
               {Blocks(host.back(), c0), Blocks(*(host.end() - 2), kCubeRows), kCubeRows, c0});
  return sizes;
}

Result<Shape> WeightShape(const Shape& host, int64_t c0, int64_t groups) {
  if (host[0] % groups != 0) {
    return Error(ErrorCode::kInvalidArgument, "FRACTAL_Z tensor: " + std::to_string(host[0]) +
                                                  " filters do not divide into " +
                                                  std::to_string(groups) + " groups.");
  }
  const GroupBlocks blocks = BlocksOfGroups(host[1], host[0], c0, groups);
  return Shape{Blocks(groups, blocks.together) * blocks.channel_blocks * host[2] * host[3],
               blocks.block_filters / kCubeRows, kCubeRows, c0};
}

Result<Shape> LstmShape(const Shape& host) {
  const int64_t hidden = host[1] / 4;
  if (host[1] % 4 != 0 || host[0] < hidden) {
    return Error(ErrorCode::kCorrupt,
                 "FRACTAL_ZN_LSTM tensor: wrong plain sizes (expected four gates as columns and "
                 "at least as many rows as a gate has columns, got " +
                     ShapeText(host) + ").");
  }
  return Shape{Blocks(host[0] - hidden, kCubeRows) + Blocks(hidden, kCubeRows),
               4 * Blocks(hidden, kCubeRows), kCubeRows, kCubeRows};
}

}  // namespace

std::string_view BlockedAxes(DeviceFormat format) {
  switch (format) {
    case DeviceFormat::kNC1HWC0:
    case DeviceFormat::kNC1HWC0C04:
    case DeviceFormat::kNHWC1C0:
    case DeviceFormat::kC1HWNC0:
    case DeviceFormat::kC1HWNCoC0:
    case DeviceFormat::kFractalZ:
    case DeviceFormat::kFractalZC04:
      return "NCHW";
    case DeviceFormat::kC1HWC0:
      return "CHW";
    case DeviceFormat::kNDC1HWC0:
    case DeviceFormat::kFractalZ3D:
      return "NCDHW";
    case DeviceFormat::kFractalNZ:
      return "HW";
    case DeviceFormat::kFractalZnLstm:
      return "CN";
    default:
      return {};
  }
}

bool TellsPlainSizes(DeviceFormat format) {
  switch (format) {
    case DeviceFormat::kFractalZ:
    case DeviceFormat::kFractalZ3D:
    case DeviceFormat::kFractalZC04:
    case DeviceFormat::kFractalNZ:
    case DeviceFormat::kFractalZnLstm:
      return false;
    default:
      return true;
  }
}

int64_t BlockChannels(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kUInt8 ? 32 : 16;
}

GroupBlocks BlocksOfGroups(int64_t channels, int64_t filters, int64_t c0, int64_t groups) {
  GroupBlocks blocks;
  blocks.channels = channels;
  blocks.filters = filters / groups;
  const int64_t by_channels = std::lcm(channels, c0) / channels;
  const int64_t by_filters = std::lcm(blocks.filters, kCubeRows) / blocks.filters;
  blocks.together = std::min(std::lcm(by_channels, by_filters), groups);
  blocks.channel_blocks = Blocks(blocks.together * channels, c0);
  blocks.block_filters = Blocks(blocks.together * blocks.filters, kCubeRows) * kCubeRows;
  return blocks;
}

Result<Shape> DeviceShape(DeviceFormat format, const Shape& host, int64_t c0, int64_t groups) {
  if (BlockedAxes(format).empty()) {
    return Error(ErrorCode::kUnsupported,
                 DeviceFormatName(format) + ": the places of its elements are not known.");
  }
  if (c0 < 1 || c0 > kLargestBlock || groups < 1) {
    return Error(
        ErrorCode::kInvalidArgument,
        DeviceFormatName(format) +
            " tensor: wrong blocks or groups (expected positive, blocks at most 1024, got " +
            std::to_string(c0) + " and " + std::to_string(groups) + ").");
  }
  PL_TRY(CheckHost(format, host));
  switch (format) {
    case DeviceFormat::kNC1HWC0:
      return Shape{host[0], Blocks(host[1], c0), host[2], host[3], c0};
    case DeviceFormat::kNC1HWC0C04:
      return Shape{host[0], Blocks(host[1], 4), host[2], host[3], 4};
    case DeviceFormat::kNHWC1C0:
      return Shape{host[0], host[2], host[3], Blocks(host[1], c0), c0};
    case DeviceFormat::kC1HWNC0:
      return Shape{Blocks(host[1], c0), host[2], host[3], host[0], c0};
    case DeviceFormat::kC1HWC0:
      return Shape{Blocks(host[0], c0), host[1], host[2], c0};
    case DeviceFormat::kC1HWNCoC0:
      return Shape{Blocks(host[1], c0), host[2], host[3], host[0], c0, c0};
    case DeviceFormat::kNDC1HWC0:
      return Shape{host[0], host[2], Blocks(host[1], c0), host[3], host[4], c0};
    case DeviceFormat::kFractalZ3D:
      return Shape{host[2] * Blocks(host[1], c0) * host[3] * host[4], Blocks(host[0], kCubeRows),
                   kCubeRows, c0};
    case DeviceFormat::kFractalZC04:
      return Shape{Blocks(4 * host[2] * host[3], 16), Blocks(host[0], kCubeRows), kCubeRows, 16};
    case DeviceFormat::kFractalZnLstm:
      return LstmShape(host);
    case DeviceFormat::kFractalNZ:
      return MatrixShape(host, c0);
    default:
      return WeightShape(host, c0, groups);
  }
}

std::string ShapeText(const Shape& sizes) {
  std::string text = "(";
  for (const int64_t size : sizes) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + ")";
}

namespace {

struct FormatRow {
  int32_t number;
  std::string_view name;
  std::string_view other_name;  // another accepted spelling, or empty
  std::string_view axes;        // see PlainAxes()
};

constexpr FormatRow kFormats[] = {
    {0, "NCHW", "", "NCHW"},
    {1, "NHWC", "", "NHWC"},
    {2, "ND", "", ""},
    {3, "NC1HWC0", "", ""},
    {4, "FRACTAL_Z", "", ""},
    {5, "NC1C0HWPAD", "", ""},
    {6, "NHWC1C0", "", ""},
    {7, "FSR_NCHW", "", ""},
    {8, "FRACTAL_DECONV", "", ""},
    {9, "C1HWNC0", "", ""},
    {10, "FRACTAL_DECONV_TRANSPOSE", "", ""},
    {11, "FRACTAL_DECONV_SP_STRIDE_TRANS", "", ""},
    {12, "NC1HWC0_C04", "", ""},
    {13, "FRACTAL_Z_C04", "", ""},
    {14, "CHWN", "", "CHWN"},
    {15, "FRACTAL_DECONV_SP_STRIDE8_TRANS", "DECONV_SP_STRIDE8_TRANS", ""},
    {16, "HWCN", "", "HWCN"},
    {17, "NC1KHKWHWC0", "", ""},
    {18, "BN_WEIGHT", "", ""},
    {19, "FILTER_HWCK", "", "HWCN"},
    {20, "HASHTABLE_LOOKUP_LOOKUPS", "LOOKUP_LOOKUPS", ""},
    {21, "HASHTABLE_LOOKUP_KEYS", "LOOKUP_KEYS", ""},
    {22, "HASHTABLE_LOOKUP_VALUE", "LOOKUP_VALUE", ""},
    {23, "HASHTABLE_LOOKUP_OUTPUT", "LOOKUP_OUTPUT", ""},
    {24, "HASHTABLE_LOOKUP_HITS", "LOOKUP_HITS", ""},
    {25, "C1HWNCoC0", "C1HWNCOC0", ""},
    {26, "MD", "", ""},
    {27, "NDHWC", "", "NDHWC"},
    {28, "FRACTAL_ZZ", "", ""},
    {29, "FRACTAL_NZ", "", ""},
    {30, "NCDHW", "", "NCDHW"},
    {31, "DHWCN", "", "DHWCN"},
    {32, "NDC1HWC0", "", ""},
    {33, "FRACTAL_Z_3D", "", ""},
    {34, "CN", "", "CN"},
    {35, "NC", "", "NC"},
    {36, "DHWNC", "", "DHWNC"},
    {37, "FRACTAL_Z_3D_TRANSPOSE", "", ""},
    {38, "FRACTAL_ZN_LSTM", "", ""},
    {39, "FRACTAL_Z_G", "", ""},
    {40, "RESERVED", "", ""},
    {41, "ALL", "", ""},
    {42, "NULL", "", ""},
    {43, "ND_RNN_BIAS", "", ""},
    {44, "FRACTAL_ZN_RNN", "", ""},
    {45, "YUV", "", ""},
    {46, "YUV_A", "", ""},
    {47, "NCL", "", "NCL"},
    {48, "FRACTAL_Z_WINO", "", ""},
    {49, "C1HWC0", "", ""},
    {255, "MAX", "", ""},
};

const FormatRow* RowOf(DeviceFormat format) {
  for (const FormatRow& row : kFormats) {
    if (row.number == static_cast<int32_t>(format)) return &row;
  }
  return nullptr;
}

}  // namespace

std::string DeviceFormatName(DeviceFormat format) {
  const FormatRow* row = RowOf(format);
  if (row == nullptr) return "FORMAT_" + std::to_string(static_cast<int32_t>(format));
  return std::string(row->name);
}

std::optional<DeviceFormat> ParseDeviceFormat(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const FormatRow& row : kFormats) {
    if (row.name == name || row.other_name == name) return static_cast<DeviceFormat>(row.number);
  }
  return std::nullopt;
}

std::string_view PlainAxes(DeviceFormat format) {
  const FormatRow* row = RowOf(format);
  return row == nullptr ? std::string_view() : row->axes;
}

namespace {

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
