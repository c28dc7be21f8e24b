// Memory formats of Ascend devices: numbers and names, sizes, and the conversion of tensors between
// them (docs/formats/device_layouts.md).

#ifndef PLUMBLINE_TENSOR_DEVICE_LAYOUT_H_
#define PLUMBLINE_TENSOR_DEVICE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/tensor.h"
#include "tensor/strided_copy.h"

namespace plumbline {

// The numbers and names of the memory formats that Ascend devices give a tensor.
// Thread-safe: static tables only.

// A format as it is numbered in dump files (the aclFormat numbers). Files may hold numbers that
// have no enumerator here; they are kept as they are. Only formats that code names are listed.
enum class DeviceFormat : int32_t {
  kNCHW = 0,
  kNHWC = 1,
  kND = 2,
  kNC1HWC0 = 3,
  kFractalZ = 4,
  kNHWC1C0 = 6,
  kC1HWNC0 = 9,
  kNC1HWC0C04 = 12,
  kFractalZC04 = 13,
  kCHWN = 14,
  kHWCN = 16,
  kFilterHWCK = 19,
  kC1HWNCoC0 = 25,
  kNDHWC = 27,
  kFractalNZ = 29,
  kNCDHW = 30,
  kDHWCN = 31,
  kNDC1HWC0 = 32,
  kFractalZ3D = 33,
  kCN = 34,
  kNC = 35,
  kDHWNC = 36,
  kFractalZnLstm = 38,
  kReserved = 40,
  kNCL = 47,
  kC1HWC0 = 49,
};

// "NC1HWC0"; "FORMAT_77" for a number without a name.
std::string DeviceFormatName(DeviceFormat format);

// The format spelled `name` in upper case; both spellings where the command line of the device's
// own tool differs from its header ("LOOKUP_KEYS", "HASHTABLE_LOOKUP_KEYS"). Nothing if unknown.
std::optional<DeviceFormat> ParseDeviceFormat(std::string_view name);

// The axes of a format without blocks or padding, outermost first: "NCHW", "CN". Empty for ND,
// whose axes have no names, for blocked formats and for unknown ones.
std::string_view PlainAxes(DeviceFormat format);

// Sizes of tensors in the blocked formats of Ascend devices.

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

// Converts tensors between the blocked and padded layouts of Ascend devices and plain ones, and
// plain layouts into each other. docs/formats/device_layouts.md gives every element's place.
//
//   PL_TRY_ASSIGN(const LayoutPlan plan, PlanLayout({{DeviceFormat::kNC1HWC0, {2, 1, 8, 8, 16}},
//                                                    DeviceFormat::kNCHW, {2, 3, 8, 8}}));
//   buffer.resize(plan.ToElements() * 2);
//   plan.Run(2, file_bytes, buffer);

// How a tensor lies in memory: sizes in the order of the format, blocks included.
struct TensorLayout {
  DeviceFormat format = DeviceFormat::kND;
  Shape sizes = {};
};

// What to convert. One of the two formats must be plain (PlainAxes() or ND), or both the same.
struct LayoutRequest {
  TensorLayout from;
  DeviceFormat to = DeviceFormat::kND;
  // Sizes of the result in the order of `to`. Empty: everything that `from` holds, its padded
  // channels included, or, where `to` is blocked, DeviceShape() with `c0`. Plain results are
  // cropped to it; fewer sizes than axes are followed by ones, more may only add ones.
  Shape wanted = {};
  int64_t groups = 1;  // of the convolution whose weight it is; used for FRACTAL_Z only
  int64_t c0 = 16;     // used only for a blocked result without sizes
};

// A checked conversion, ready to run for any element size. A value; thread-compatible.
class LayoutPlan {
 public:
  [[nodiscard]] const Shape& result() const { return result_; }  // sizes as `to` orders them
  [[nodiscard]] size_t FromElements() const { return from_elements_; }
  [[nodiscard]] size_t ToElements() const { return to_elements_; }

  // Fills all of `to`; positions without a source (padding) become zero. Runs on the threads of
  // the surrounding RunWithThreads(). Requires: element_bytes is 1, 2, 4, 8 or 16; `from` has at
  // least FromElements() elements and `to` exactly ToElements(); no overlap.
  void Run(size_t element_bytes, std::span<const std::byte> from, std::span<std::byte> to) const;

 private:
  friend Result<LayoutPlan> PlanLayout(const LayoutRequest& request);

  Shape result_;
  size_t from_elements_ = 0;
  size_t to_elements_ = 0;
  std::vector<StridedCopy> copies_;
};

// Plans a conversion. kUnsupported: no conversion between the two formats is known. kCorrupt: the
// sizes contradict the format or each other, or `wanted` is larger than what `from` holds.
// kInvalidArgument: `wanted` is needed (FRACTAL_Z does not say its height and width) or `groups`
// does not divide the filters.
Result<LayoutPlan> PlanLayout(const LayoutRequest& request);

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_DEVICE_LAYOUT_H_
