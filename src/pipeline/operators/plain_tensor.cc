#include "pipeline/operators/plain_tensor.h"

#include <algorithm>
#include <utility>

#include "tensor/plain_order.h"

namespace plumbline::pipeline {
namespace {

int64_t GroupsOf(const acl::DumpedTensor& tensor) { return std::max(tensor.sub_format, 1); }

int64_t CountOf(const Shape& sizes) { return ElementCount(sizes).value_or(-1); }

acl::Elements Converted(const acl::Elements& elements, const LayoutPlan& plan,
                        std::vector<std::byte>* memory = nullptr) {
  const size_t width = InfoOf(elements.dtype).size_bytes;
  acl::Elements converted;
  converted.dtype = elements.dtype;
  converted.sizes = plan.result();
  converted.strides = ContiguousStrides(converted.sizes);
  if (memory != nullptr) converted.owned = std::move(*memory);
  converted.owned.resize(plan.ToElements() * width);
  plan.Run(width, elements.bytes, converted.owned);
  converted.bytes = converted.owned;
  return converted;
}

LayoutRequest RequestOf(const acl::DumpedTensor& tensor, const Shape& sizes,
                        const PlainLayout& layout) {
  LayoutRequest request;
  request.from = {static_cast<DeviceFormat>(tensor.format), sizes};
  request.to = layout.format;
  request.wanted = layout.sizes;
  request.groups = GroupsOf(tensor);
  return request;
}

}  // namespace

std::optional<PlainLayout> OwnLayout(const acl::DumpedTensor& tensor) {
  const auto format = static_cast<DeviceFormat>(tensor.format);
  const std::optional<Shape> device = acl::KnownShape(tensor.shape);
  const std::optional<Shape> original = acl::KnownShape(tensor.original_shape);
  const std::string_view axes = BlockedAxes(format);
  if (axes.empty() || !device || !original || device->empty()) return std::nullopt;
  if (format == DeviceFormat::kFractalNZ) return PlainLayout{DeviceFormat::kND, *original};
  std::optional<PlainLayout> own;
  for (const DeviceFormat order : FrameworkOrders()) {
    const PlainLayout layout{order, *original};
    if (!IsExactly(tensor, layout)) continue;
    // Two orders that leave different elements as padding: none may be left out.
    if (own && SizesIn(order, *original, own->format) != own->sizes) return std::nullopt;
    if (!own) own = layout;
  }
  return own;
}

bool HasConverter(const UserCode* own, const acl::DumpedTensor& tensor, DeviceFormat to) {
  return own != nullptr && own->Converts(static_cast<DeviceFormat>(tensor.format), to);
}

std::optional<PlainLayout> OwnLayout(const acl::DumpedTensor& tensor, const UserCode* own) {
  std::optional<PlainLayout> layout = OwnLayout(tensor);
  const std::optional<Shape> original = acl::KnownShape(tensor.original_shape);
  if (layout || !original) return layout;
  const DeviceFormat to = original->size() == 4   ? DeviceFormat::kNCHW
                          : original->size() == 5 ? DeviceFormat::kNCDHW
                                                  : DeviceFormat::kND;
  if (HasConverter(own, tensor, to)) layout = PlainLayout{to, *original};
  return layout;
}

bool IsExactly(const acl::DumpedTensor& tensor, const PlainLayout& layout) {
  const auto format = static_cast<DeviceFormat>(tensor.format);
  const std::optional<Shape> device = acl::KnownShape(tensor.shape);
  if (BlockedAxes(format).empty() || !device || device->empty()) return false;
  if (format == DeviceFormat::kFractalNZ) {  // the plan checks it
    return PlanLayout({{format, *device}, layout.format, layout.sizes}).has_value();
  }
  return plumbline::IsExactly({format, *device}, layout.format, layout.sizes, GroupsOf(tensor));
}

Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout) {
  PL_TRY_ASSIGN(acl::Elements elements, acl::ElementsOf(tensor));
  const auto format = static_cast<DeviceFormat>(tensor.format);
  if (!layout || BlockedAxes(format).empty()) return elements;
  PL_TRY_ASSIGN(const LayoutPlan plan, PlanLayout(RequestOf(tensor, elements.sizes, *layout)));
  return Converted(elements, plan);
}

std::shared_ptr<const OwnLayouts::Known> OwnLayouts::Of(const acl::DumpedTensor& tensor) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(
        std::tie(tensor.format, tensor.sub_format, tensor.shape, tensor.original_shape));
    if (found != known_.end()) return found->second;
  }
  auto known = std::make_shared<Known>();
  known->layout = OwnLayout(tensor, user_);
  if (known->layout && HasConverter(user_, tensor, known->layout->format)) {
    known->converter = user_;
  } else if (known->layout) {
    Result<LayoutPlan> plan =
        PlanLayout(RequestOf(tensor, *acl::KnownShape(tensor.shape), *known->layout));
    if (plan) known->plan = *std::move(plan);
  }
  Key key{tensor.format, tensor.sub_format, tensor.shape, tensor.original_shape};
  const std::scoped_lock lock(mutex_);
  return known_.emplace(std::move(key), std::move(known)).first->second;
}

Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor, const OwnLayouts::Known& own,
                                    std::vector<std::byte>* memory) {
  if (!own.plan) return PlainElements(tensor, own.layout, own.converter);
  PL_TRY_ASSIGN(const acl::Elements elements, acl::ElementsOf(tensor));
  // Types without elements of their own are one run of bytes, whatever the shape.
  if (!std::ranges::equal(elements.sizes, *tensor.shape, std::cmp_equal<int64_t, uint64_t>)) {
    return PlainElements(tensor, own.layout);
  }
  return Converted(elements, *own.plan, memory);
}

Result<acl::Elements> PlainElements(const acl::DumpedTensor& tensor,
                                    const std::optional<PlainLayout>& layout, UserCode* own) {
  if (!layout || !HasConverter(own, tensor, layout->format)) return PlainElements(tensor, layout);
  PL_TRY_ASSIGN(const acl::Elements elements, acl::ElementsOf(tensor));
  PL_TRY_ASSIGN(acl::Elements converted,
                own->Convert({static_cast<DeviceFormat>(tensor.format), layout->format,
                              layout->sizes, GroupsOf(tensor)},
                             elements));
  // What is cut off must be padding: sizes of another count than the original ones hide elements.
  const std::optional<Shape> original = acl::KnownShape(tensor.original_shape);
  if (original && CountOf(*original) != CountOf(layout->sizes)) return converted;
  return CroppedTo(layout->sizes, std::move(converted));
}

Result<acl::Elements> Reordered(acl::Elements elements, DeviceFormat from, const PlainLayout& to) {
  LayoutRequest request;
  request.from = {from, elements.sizes};
  request.to = to.format;
  request.wanted = to.sizes;
  PL_TRY_ASSIGN(const LayoutPlan plan, PlanLayout(request));
  return Converted(elements, plan);
}

}  // namespace plumbline::pipeline
