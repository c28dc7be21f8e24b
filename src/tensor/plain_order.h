// Which plain order of axes a tensor's original sizes are in. Dumps of devices hold the original
// sizes and not their order; the sizes on the device tell it.

#ifndef PLUMBLINE_TENSOR_PLAIN_ORDER_H_
#define PLUMBLINE_TENSOR_PLAIN_ORDER_H_

#include <cstdint>
#include <optional>
#include <span>

#include "plumbline/tensor.h"
#include "tensor/device_format.h"
#include "tensor/device_layout.h"

namespace plumbline {

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

}  // namespace plumbline

#endif  // PLUMBLINE_TENSOR_PLAIN_ORDER_H_
