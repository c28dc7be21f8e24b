// Tensors of device dumps and arrays, brought into a layout in which two sides can be compared.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_PLAIN_TENSOR_H_
#define PLUMBLINE_PIPELINE_OPERATORS_PLAIN_TENSOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "formats/acl_dump.h"
#include "formats/acl_types.h"
#include "pipeline/user_code/user_code.h"
#include "plumbline/tensor.h"
#include "tensor/device_format.h"
#include "tensor/device_layout.h"

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
// The same where the user has a converter from the tensor's layout: to what the original shape is
// by its number of dimensions, as upstream takes it (four NCHW, five NCDHW, others ND).
std::optional<PlainLayout> OwnLayout(const acl::DumpedTensor& tensor, const UserCode* own);
// Whether the user has a converter from the tensor's layout.
bool HasConverter(const UserCode* own, const acl::DumpedTensor& tensor, DeviceFormat to);

// Whether the device shape is that of `layout`: nothing but padding is cropped. Plain tensors:
// false.
bool IsExactly(const acl::DumpedTensor& tensor, const PlainLayout& layout);

// The elements in `layout`, or as they are without one. Errors of acl::ElementsOf() and
// PlanLayout(); the messages have no path. The elements may lie in the tensor's data.
Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout);
// The same; a converter of the user comes before the built-in one. kInternal: it failed.
Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout, UserCode* own);

// Own layouts of dumped tensors and the way to them, found once for all tensors of the same format
// and sizes: networks repeat them. Thread-safe.
class OwnLayouts {
 public:
  struct Known {
    std::optional<PlainLayout> layout;  // OwnLayout()
    std::optional<LayoutPlan> plan;     // from the device shape to it, where there is one
    UserCode* converter = nullptr;      // the user's own, where there is one
  };
  // `user` may be null; must outlive this object.
  explicit OwnLayouts(UserCode* user = nullptr) : user_(user) {}
  std::shared_ptr<const Known> Of(const acl::DumpedTensor& tensor);

 private:
  using Key = std::tuple<DeviceFormat, int32_t, std::optional<acl::Dims>, std::optional<acl::Dims>>;
  // Also finds what is borrowed.
  using Map = std::map<Key, std::shared_ptr<const Known>, std::less<>>;
  UserCode* user_;
  std::mutex mutex_;
  Map known_;  // guarded by mutex_
};

// The same as with the layout alone. Requires: `own` is that of the tensor. What must be
// converted takes `memory`, where there is any: that of elements before these needs no new pages.
Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor, const OwnLayouts::Known& own,
                                    std::vector<std::byte>* memory = nullptr);

// Elements of a plain array in another order of its axes (kNHWC as kNCHW).
Result<acl::Elements> Reordered(acl::Elements elements, DeviceFormat from, const PlainLayout& to);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_PLAIN_TENSOR_H_
