// Sizes of tensors in the blocked formats of Ascend devices.

#ifndef PLUMBLINE_TENSOR_DEVICE_SHAPE_H_
#define PLUMBLINE_TENSOR_DEVICE_SHAPE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "plumbline/tensor.h"
#include "tensor/device_format.h"

namespace plumbline {

// Filters of one block, or rows of a block of a matrix.
inline constexpr int64_t kCubeRows = 16;

// The axes of the plain tensors that a blocked format stands for: "NCHW", "NCDHW", "CN"; "HW" for
// FRACTAL_NZ, after any number of others. Empty: not blocked, or a format without known places.
std::string_view BlockedAxes(DeviceFormat format);

// Whether the plain sizes, padding included, follow from the device sizes alone.
bool TellsPlainSizes(DeviceFormat format);

// Channels of one block of a tensor of this type: 32 for int8 and uint8, else 16. Formats whose
// name ends in C04 always have 4. Files say it in their device shape, which takes precedence.
int64_t BlockChannels(DType dtype);

// How several groups of a convolution share blocks of channels and filters.
struct GroupBlocks {
  int64_t channels = 1;        // of one group
  int64_t filters = 1;         // of one group
  int64_t together = 1;        // groups side by side in one block
  int64_t channel_blocks = 1;  // blocks of c0 channels that these groups take
  int64_t block_filters = 1;   // filters that these groups take, with padding
};

// Requires: all positive; `groups` divides `filters`, the filters of all groups.
GroupBlocks BlocksOfGroups(int64_t channels, int64_t filters, int64_t c0, int64_t groups);

// Sizes of a tensor on the device. `host` holds the sizes of BlockedAxes(), in that order.
// kUnsupported: BlockedAxes() is empty. kCorrupt: `host` has the wrong rank, a size below 1
// or more than 2^48 elements. kInvalidArgument: `c0` is not 1 to 1024, `groups` is below 1 or does
// not divide the filters.
Result<Shape> DeviceShape(DeviceFormat format, const Shape& host, int64_t c0, int64_t groups = 1);

// "(2,1,8,8,16)", for messages.
std::string ShapeText(const Shape& sizes);

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_DEVICE_SHAPE_H_
