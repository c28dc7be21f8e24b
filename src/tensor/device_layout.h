// Converts tensors between the blocked and padded layouts of Ascend devices and plain ones, and
// plain layouts into each other. docs/formats/device_layouts.md gives every element's place.
//
//   PL_TRY_ASSIGN(const LayoutPlan plan, PlanLayout({{DeviceFormat::kNC1HWC0, {2, 1, 8, 8, 16}},
//                                                    DeviceFormat::kNCHW, {2, 3, 8, 8}}));
//   buffer.resize(plan.ToElements() * 2);
//   plan.Run(2, file_bytes, buffer);

#ifndef PLUMBLINE_TENSOR_DEVICE_LAYOUT_H_
#define PLUMBLINE_TENSOR_DEVICE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plumbline/tensor.h"
#include "tensor/device_format.h"
#include "tensor/device_shape.h"
#include "tensor/strided_copy.h"

namespace plumbline {

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
