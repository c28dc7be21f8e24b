#include "pipeline/operators/plain_tensor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tensor/device_layout.h"

namespace plumbline::pipeline {
namespace {

// Sizes of a plain format in the order of a blocked format's axes; nothing if it lacks one.
std::optional<Shape> InOrder(DeviceFormat plain, const Shape& sizes, std::string_view axes) {
  const std::string_view names = PlainAxes(plain);
  if (names.size() != sizes.size()) return std::nullopt;
  Shape ordered;
  for (const char name : axes) {
    const size_t at = names.find(name);
    if (at == std::string_view::npos) return std::nullopt;
    ordered.push_back(sizes[at]);
  }
  return ordered;
}

int64_t GroupsOf(const acl::DumpedTensor& tensor) { return std::max(tensor.sub_format, 1); }

Result<acl::Elements> Converted(acl::Elements elements, const LayoutRequest& request) {
  PL_TRY_ASSIGN(const LayoutPlan plan, PlanLayout(request));
  const size_t width = InfoOf(elements.dtype).size_bytes;
  acl::Elements converted;
  converted.dtype = elements.dtype;
  converted.sizes = plan.result();
  converted.strides = ContiguousStrides(converted.sizes);
  converted.owned.resize(plan.ToElements() * width);
  plan.Run(width, elements.bytes, converted.owned);
  converted.bytes = converted.owned;
  return converted;
}

}  // namespace

std::optional<PlainLayout> OwnLayout(const acl::DumpedTensor& tensor) {
  const auto format = static_cast<DeviceFormat>(tensor.format);
  const std::optional<Shape> device = acl::KnownShape(tensor.shape);
  const std::optional<Shape> original = acl::KnownShape(tensor.original_shape);
  const std::string_view axes = BlockedAxes(format);
  if (axes.empty() || !device || !original || device->empty()) return std::nullopt;
  if (format == DeviceFormat::kFractalNZ) return PlainLayout{DeviceFormat::kND, *original};
  constexpr std::array kOrders = {DeviceFormat::kNCHW,  DeviceFormat::kNHWC,  DeviceFormat::kHWCN,
                                  DeviceFormat::kNCDHW, DeviceFormat::kNDHWC, DeviceFormat::kDHWCN,
                                  DeviceFormat::kCN,    DeviceFormat::kNC};
  for (const DeviceFormat order : kOrders) {
    const PlainLayout layout{order, *original};
    if (IsExactly(tensor, layout)) return layout;
  }
  return std::nullopt;
}

bool IsExactly(const acl::DumpedTensor& tensor, const PlainLayout& layout) {
  const auto format = static_cast<DeviceFormat>(tensor.format);
  const std::optional<Shape> device = acl::KnownShape(tensor.shape);
  if (BlockedAxes(format).empty() || !device || device->empty()) return false;
  if (format == DeviceFormat::kFractalNZ) {  // the plan checks it
    return PlanLayout({{format, *device}, layout.format, layout.sizes}).has_value();
  }
  const std::optional<Shape> host = InOrder(layout.format, layout.sizes, BlockedAxes(format));
  if (!host) return false;
  const auto expected = DeviceShape(format, *host, device->back(), GroupsOf(tensor));
  return expected && *expected == *device;
}

Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout) {
  PL_TRY_ASSIGN(acl::Elements elements, acl::ElementsOf(tensor));
  const auto format = static_cast<DeviceFormat>(tensor.format);
  if (!layout || BlockedAxes(format).empty()) return elements;
  LayoutRequest request;
  request.from = {format, elements.sizes};
  request.to = layout->format;
  request.wanted = layout->sizes;
  request.groups = GroupsOf(tensor);
  return Converted(std::move(elements), request);
}

Result<acl::Elements> Reordered(acl::Elements elements, DeviceFormat from, const PlainLayout& to) {
  LayoutRequest request;
  request.from = {from, elements.sizes};
  request.to = to.format;
  request.wanted = to.sizes;
  return Converted(std::move(elements), request);
}

}  // namespace plumbline::pipeline
