#include "tensor/device_blocks.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "tensor/device_layout.h"

namespace plumbline {

namespace {

// Sizes of a plain format by the names in `axes`; nothing if it lacks one, or has another axis of
// more than one.
std::optional<Shape> InOrder(DeviceFormat plain, const Shape& sizes, std::string_view axes) {
  const std::string_view names = PlainAxes(plain);
  if (names.size() != sizes.size()) return std::nullopt;
  for (size_t i = 0; i < names.size(); ++i) {
    if (sizes[i] != 1 && axes.find(names[i]) == std::string_view::npos) return std::nullopt;
  }
  Shape ordered;
  for (const char name : axes) {
    const size_t at = names.find(name);
    if (at == std::string_view::npos) return std::nullopt;
    ordered.push_back(sizes[at]);
  }
  return ordered;
}

}  // namespace

std::span<const DeviceFormat> FrameworkOrders() {
  static constexpr std::array kOrders = {
      DeviceFormat::kNCHW,  DeviceFormat::kNHWC,  DeviceFormat::kHWCN, DeviceFormat::kNCDHW,
      DeviceFormat::kNDHWC, DeviceFormat::kDHWCN, DeviceFormat::kCN,   DeviceFormat::kNC};
  return kOrders;
}

std::optional<Shape> SizesIn(DeviceFormat from, const Shape& sizes, DeviceFormat to) {
  const std::string_view names = PlainAxes(from);
  const std::string_view to_names = PlainAxes(to);
  if (names.empty() || to_names.empty() || names.size() != sizes.size()) return std::nullopt;
  for (size_t i = 0; i < names.size(); ++i) {
    if (sizes[i] != 1 && to_names.find(names[i]) == std::string_view::npos) return std::nullopt;
  }
  Shape ordered;
  for (const char name : to_names) {
    const size_t at = names.find(name);
    ordered.push_back(at == std::string_view::npos ? 1 : sizes[at]);
  }
  return ordered;
}

bool IsExactly(const TensorLayout& tensor, DeviceFormat order, const Shape& sizes, int64_t groups) {
  if (tensor.format == DeviceFormat::kFractalNZ || tensor.sizes.empty()) return false;
  if (!PlainAxes(tensor.format).empty()) {
    return InOrder(order, sizes, PlainAxes(tensor.format)) == tensor.sizes;
  }
  const std::string_view axes = BlockedAxes(tensor.format);
  const std::optional<Shape> host = InOrder(order, sizes, axes);
  if (!host || axes.empty()) return false;
  const auto expected = DeviceShape(tensor.format, *host, tensor.sizes.back(), groups);
  return expected && *expected == tensor.sizes;
}

namespace {

// A factor of a device shape: a whole axis with its padding, the number of an axis' block ('1') or
// the place in the block ('0').
struct Factor {
  char axis = 0;
  char part = 0;
  int64_t size = 1;
  int64_t stride = 1;
};

// The factors of a format, outermost first. FRACTAL_Z_C04 takes height and width as one axis X, in
// blocks of four; only the diagonal of C1HWNCoC0 is used.
std::string_view FactorText(DeviceFormat format) {
  switch (format) {
    case DeviceFormat::kNC1HWC0:
    case DeviceFormat::kNC1HWC0C04:
      return "N C1 H W C0";
    case DeviceFormat::kNHWC1C0:
      return "N H W C1 C0";
    case DeviceFormat::kC1HWC0:
      return "C1 H W C0";
    case DeviceFormat::kC1HWNCoC0:
      return "C1 H W N C0 C0";
    case DeviceFormat::kNDC1HWC0:
      return "N D C1 H W C0";
    case DeviceFormat::kFractalZ3D:
      return "D C1 H W N C0";
    case DeviceFormat::kFractalZC04:
      return "X1 N X0 C";
    case DeviceFormat::kFractalZnLstm:
      return "C1 N C0";
    case DeviceFormat::kFractalNZ:
      return "W1 H W0";
    default:  // FRACTAL_Z, C1HWNC0
      return "C1 H W N C0";
  }
}

// The factors of a format; `sizes` says their sizes. Axes in front of a matrix become whole ones.
// Requires: as many sizes as factors, or more.
std::vector<Factor> FactorsOf(DeviceFormat format, const Shape& sizes) {
  std::vector<Factor> factors;
  for (const char letter : FactorText(format)) {
    if (letter == '0' || letter == '1') {
      factors.back().part = letter;
    } else if (letter != ' ') {
      factors.push_back({letter, 0, 1, 1});
    }
  }
  for (char leading = 'a'; factors.size() < sizes.size(); ++leading) {
    factors.insert(factors.begin() + (leading - 'a'), {leading, 0, 1, 1});
  }
  int64_t stride = 1;
  for (size_t i = factors.size(); i-- > 0; stride *= sizes[i]) {
    factors[i].size = sizes[i];
    factors[i].stride = stride;
  }
  return factors;
}

int64_t SizeOf(const std::vector<PlainAxis>& plain, char name) {
  const auto found = std::find_if(plain.begin(), plain.end(),
                                  [&](const PlainAxis& axis) { return axis.name == name; });
  return found == plain.end() ? 1 : found->size;
}

// The factors' sizes of a format; the device shape of some joins several into one size.
Shape FactorSizes(DeviceFormat format, const Shape& device, const std::vector<PlainAxis>& plain) {
  const int64_t height = SizeOf(plain, 'H');
  const int64_t width = SizeOf(plain, 'W');
  switch (format) {
    case DeviceFormat::kFractalZ:
      return {device[0] / (height * width), height, width, device[1] * device[2], device[3]};
    case DeviceFormat::kFractalZ3D: {
      const int64_t depth = SizeOf(plain, 'D');
      const int64_t blocks = device[0] / (depth * height * width);
      return {depth, blocks, height, width, device[1] * device[2], device[3]};
    }
    case DeviceFormat::kFractalZC04:
      return {device[0], device[1] * device[2], 4, 4};
    case DeviceFormat::kFractalZnLstm:
      return {device[0], device[1] * device[2], device[3]};
    case DeviceFormat::kFractalNZ: {
      Shape sizes(device.begin(), device.end() - 2);
      sizes.back() *= device[device.size() - 2];
      sizes.push_back(device.back());
      return sizes;
    }
    default:
      return device;
  }
}

PlacedAxis PlaceAxis(const PlainAxis& axis, const std::vector<Factor>& factors) {
  PlacedAxis placed;
  placed.size = axis.size;
  placed.plain_stride = axis.stride;
  for (const Factor& factor : factors) {
    if (factor.axis != axis.name) continue;
    if (factor.part == '1') {
      placed.block_stride = factor.stride;
      continue;
    }
    placed.stride += factor.stride;
    if (factor.part == '0') placed.block = factor.size;
  }
  return placed;
}

// Elements along an axis that these factors have room for.
int64_t Room(char axis, const std::vector<Factor>& factors) {
  int64_t room = 1;
  char counted = '?';
  for (const Factor& factor : factors) {
    if (factor.axis != axis || factor.part == counted) continue;
    room *= factor.size;
    counted = factor.part;
  }
  return room;
}

std::vector<PlacedBox> PlaceGroups(const Shape& device, const std::vector<PlainAxis>& plain,
                                   int64_t groups) {
  const int64_t c0 = device.back();
  const GroupBlocks blocks = BlocksOfGroups(SizeOf(plain, 'C'), SizeOf(plain, 'N'), c0, groups);
  const Shape sizes = {blocks.channel_blocks, SizeOf(plain, 'H'), SizeOf(plain, 'W'),
                       blocks.block_filters, c0};
  const std::vector<Factor> factors = FactorsOf(DeviceFormat::kFractalZ, sizes);
  std::vector<PlacedBox> boxes;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t beside = group % blocks.together;
    PlacedBox box;
    box.device_offset =
        group / blocks.together * sizes[0] * factors[0].stride + beside * blocks.filters * c0;
    for (PlainAxis axis : plain) {
      if (axis.name == 'N') {
        axis.size = blocks.filters;
        box.plain_offset = group * blocks.filters * axis.stride;
      }
      box.axes.push_back(PlaceAxis(axis, factors));
      if (axis.name == 'C') box.axes.back().phase = beside * blocks.channels;
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

// A recurrent weight: rows for the input and for the hidden state, columns for four gates; each of
// these eight parts starts a block.
std::vector<PlacedBox> PlaceGates(const std::vector<Factor>& factors,
                                  const std::vector<PlainAxis>& plain) {
  const int64_t hidden = SizeOf(plain, 'N') / 4;
  const int64_t inputs = SizeOf(plain, 'C') - hidden;
  std::vector<PlacedBox> boxes;
  for (int64_t part = 0; part < 8; ++part) {
    const bool is_hidden = part >= 4;
    const int64_t gate = part % 4;
    const int64_t rows = is_hidden ? hidden : inputs;
    if (rows == 0) continue;
    PlacedBox box;
    for (PlainAxis axis : plain) {
      const bool is_row = axis.name == 'C';
      const int64_t first = is_row ? (is_hidden ? inputs : 0) : gate * hidden;
      box.plain_offset += axis.name == 'C' || axis.name == 'N' ? first * axis.stride : 0;
      if (is_row) axis.size = rows;
      if (axis.name == 'N') axis.size = hidden;
      box.axes.push_back(PlaceAxis(axis, factors));
    }
    const int64_t first_block = is_hidden ? (inputs + kCubeRows - 1) / kCubeRows : 0;
    box.device_offset =
        first_block * factors[0].stride + gate * (factors[1].size / 4) * factors[1].stride;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

// The plain axes with height and width as one axis X. Every plain format has them side by side.
std::vector<PlainAxis> JoinPlane(const std::vector<PlainAxis>& plain) {
  std::vector<PlainAxis> joined;
  for (PlainAxis axis : plain) {
    if (axis.name == 'H') continue;
    if (axis.name == 'W') axis = {'X', SizeOf(plain, 'H') * axis.size, axis.stride};
    joined.push_back(axis);
  }
  return joined;
}

Error Contradiction(DeviceFormat format, const Shape& device, const std::string& expected) {
  return {ErrorCode::kCorrupt, DeviceFormatName(format) + " tensor: wrong sizes (expected " +
                                   expected + ", got " + ShapeText(device) + ")."};
}

// Checks `device` against what DeviceShape() makes of the plain sizes.
Status CheckExact(DeviceFormat format, const Shape& device, const std::vector<PlainAxis>& plain,
                  int64_t groups) {
  Shape host;
  for (const PlainAxis& axis : plain) {
    if (axis.name >= 'a') host.push_back(axis.size);
  }
  for (const char name : BlockedAxes(format)) host.push_back(SizeOf(plain, name));
  if (device.size() < 4 || device.back() < 1 || device.back() > kLargestBlock) {
    return Contradiction(format, device, "a block as the last two of four or more sizes");
  }
  PL_TRY_ASSIGN(const Shape exact, DeviceShape(format, host, device.back(), groups));
  if (device != exact) {
    return Contradiction(format, device, ShapeText(exact) + " for " + ShapeText(host));
  }
  return {};
}

// Checks that `device` has one size for each factor.
Status CheckRank(DeviceFormat format, const Shape& device) {
  const std::string_view text = FactorText(format);
  const auto rank = static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
  if (device.size() == rank) return {};
  return Contradiction(format, device, std::to_string(rank) + " sizes");
}

}  // namespace

Result<int64_t> RoomAlong(DeviceFormat format, const Shape& device, char axis) {
  PL_TRY(CheckRank(format, device));
  return Room(axis, FactorsOf(format, device));
}

Result<std::vector<PlacedBox>> PlaceBlocks(DeviceFormat format, const Shape& device,
                                           const std::vector<PlainAxis>& plain, int64_t groups) {
  const bool is_exact = !TellsPlainSizes(format);
  if (is_exact) PL_TRY(CheckExact(format, device, plain, groups));
  if (is_exact && groups > 1 && format == DeviceFormat::kFractalZ) {
    return PlaceGroups(device, plain, groups);
  }
  if (!is_exact) PL_TRY(CheckRank(format, device));
  const std::vector<Factor> factors = FactorsOf(format, FactorSizes(format, device, plain));
  if (format == DeviceFormat::kFractalZnLstm) return PlaceGates(factors, plain);
  PlacedBox box;
  for (const PlainAxis& axis : format == DeviceFormat::kFractalZC04 ? JoinPlane(plain) : plain) {
    if (Room(axis.name, factors) < axis.size) {
      return Contradiction(format, device,
                           std::to_string(axis.size) + " or more along " + axis.name);
    }
    box.axes.push_back(PlaceAxis(axis, factors));
  }
  return std::vector<PlacedBox>{std::move(box)};
}

}  // namespace plumbline
