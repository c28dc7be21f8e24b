// Blocked device formats: which plain order of axes belongs to a tensor's sizes, and where each
// element lies.

#ifndef PLUMBLINE_TENSOR_DEVICE_BLOCKS_H_
#define PLUMBLINE_TENSOR_DEVICE_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plumbline/tensor.h"
#include "tensor/device_layout.h"

namespace plumbline {

// No device has blocks of that size; it keeps products in range whatever a file says.
inline constexpr int64_t kLargestBlock = 1024;

// Which plain order of axes a tensor's original sizes are in. Dumps of devices hold the original
// sizes and not their order; the sizes on the device tell it.

// The orders that frameworks have, the likeliest first.
std::span<const DeviceFormat> FrameworkOrders();

// `sizes` of the plain format `from` in the order of `to`, another plain format. Axes that only
// `to` has are 1. Nothing: `from` has another number of axes, or one of another size than 1 that
// `to` lacks.
std::optional<Shape> SizesIn(DeviceFormat from, const Shape& sizes, DeviceFormat to);

// Whether `sizes` of the plain format `order` need exactly the tensor's sizes: between the two
// there is nothing but padding. `groups` as in LayoutRequest. False for formats without named
// axes, FRACTAL_NZ among them.
bool IsExactly(const TensorLayout& tensor, DeviceFormat order, const Shape& sizes, int64_t groups);

// Where each element lies: the one statement of the rules that device_layout converts by.

// One axis of the plain side, named by its letter in the format ("N", "C", ...). The axes in front
// of a matrix are 'a', 'b', ...; its last two are 'H' and 'W'.
struct PlainAxis {
  char name = 0;
  int64_t size = 1;
  int64_t stride = 1;  // in elements
};

// One axis of a box that both sides hold. Element i of the box lies at i * plain_stride on the
// plain side and, with p = i + phase, at (p / block) * block_stride + (p % block) * stride on the
// device; without blocks (block 0) at i * stride.
struct PlacedAxis {
  int64_t size = 1;
  int64_t plain_stride = 1;
  int64_t stride = 0;
  int64_t block = 0;
  int64_t block_stride = 0;
  int64_t phase = 0;
};

// A box of elements with at most one axis in blocks.
struct PlacedBox {
  int64_t plain_offset = 0;
  int64_t device_offset = 0;
  std::vector<PlacedAxis> axes;
};

// Places of the elements of a plain tensor in a device tensor of sizes `device`. kCorrupt if these
// sizes cannot hold the plain ones; where they say less than the plain ones (TellsPlainSizes()
// false) they must be exactly those of DeviceShape(). kInvalidArgument: `groups`, see there.
// Requires: `plain` has each axis of BlockedAxes(format) once, all sizes are positive, and the
// products of `device` and of the plain sizes fit int64_t.
Result<std::vector<PlacedBox>> PlaceBlocks(DeviceFormat format, const Shape& device,
                                           const std::vector<PlainAxis>& plain, int64_t groups);

// Elements that a device tensor has room for along an axis of BlockedAxes(), padding included.
// kCorrupt: `device` has the wrong number of sizes. Requires: TellsPlainSizes(format).
Result<int64_t> RoomAlong(DeviceFormat format, const Shape& device, char axis);

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_DEVICE_BLOCKS_H_
