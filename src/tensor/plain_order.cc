#include "tensor/plain_order.h"

#include <array>
#include <string_view>

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

}  // namespace plumbline
