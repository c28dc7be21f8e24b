// Tensors of device dumps and arrays, brought into a layout in which two sides can be compared.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_PLAIN_TENSOR_H_
#define PLUMBLINE_PIPELINE_OPERATORS_PLAIN_TENSOR_H_

#include <optional>
#include <string>

#include "formats/acl_dump.h"
#include "formats/acl_types.h"
#include "plumbline/tensor.h"
#include "tensor/device_format.h"

namespace plumbline::pipeline {

// The layout to bring a tensor into.
struct PlainLayout {
  DeviceFormat format = DeviceFormat::kND;
  Shape sizes;
};

// The plain layout that a dumped tensor stands for by its own facts: the device shape is that of
// the original shape in exactly this order. Nothing: it is plain already, no order fits, or several
// do that differ in what is padding.
std::optional<PlainLayout> OwnLayout(const acl::DumpedTensor& tensor);

// Whether the device shape is that of `layout`: nothing but padding is cropped. Plain tensors:
// false.
bool IsExactly(const acl::DumpedTensor& tensor, const PlainLayout& layout);

// The elements in `layout`, or as they are without one. Errors of acl::ElementsOf() and
// PlanLayout(); the messages have no path. The elements may lie in the tensor's data.
Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout);

// Elements of a plain array in another order of its axes (kNHWC as kNCHW).
Result<acl::Elements> Reordered(acl::Elements elements, DeviceFormat from, const PlainLayout& to);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_PLAIN_TENSOR_H_
