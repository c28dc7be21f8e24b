#include "tensor/device_shape.h"

#include <algorithm>
#include <numeric>

namespace plumbline {
namespace {

// No device has blocks of that size and no tensor as many elements; they keep products in range
// whatever a file says.
constexpr int64_t kLargestBlock = 1024;
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

}  // namespace plumbline
