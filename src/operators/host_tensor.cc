#include "operators/host_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "match/expand.h"
#include "tensor/device_blocks.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {
namespace {

DumpCode CodeOfPlan(const Error& error) {
  if (error.code() == ErrorCode::kUnsupported) return DumpCode::kInvalidFormat;
  return error.code() == ErrorCode::kInvalidArgument ? DumpCode::kInvalidParameter
                                                     : DumpCode::kInvalidShape;
}

// Stored elements that can be moved one by one: types of less than a byte are decoded first.
DumpResult<HostTensor> Movable(HostTensor tensor) {
  const acl::TypeInfo* type = acl::FindType(tensor.data_type);
  if (type == nullptr || type->encoding == acl::Encoding::kUnsupported ||
      type->encoding == acl::Encoding::kRawBytes) {
    return DumpFailure{DumpCode::kInvalidDataType,
                       fmt::format("data type {}: its layout cannot be converted",
                                   acl::TypeName(tensor.data_type))};
  }
  if (type->bits >= 8) return tensor;
  Result<acl::Elements> elements = acl::Decode(tensor.data_type, tensor.sizes, tensor.bytes);
  if (!elements) return Failed(DumpCode::kInvalidDumpData, elements.error());
  HostTensor decoded;
  decoded.data_type = *acl::CodeOfDType(elements->dtype);
  decoded.format = tensor.format;
  decoded.sizes = std::move(elements->sizes);
  decoded.owned = KeptBuffer(elements->bytes.size());
  std::ranges::copy(elements->bytes, decoded.owned.bytes().begin());
  decoded.bytes = decoded.owned.bytes();
  return decoded;
}

// A matrix of blocks has no axes to order: as upstream has it, these three are the same array.
bool IsMatrixTarget(DeviceFormat to) {
  return to == DeviceFormat::kND || to == DeviceFormat::kNCHW || to == DeviceFormat::kNHWC;
}

constexpr size_t kNzBlockAxes = 4;

// FRACTAL_NZ does not say how much of its last blocks is padding: the shape must, and it must need
// exactly these blocks.
DumpStatus CheckFractalNz(const Shape& device, const std::optional<Shape>& wanted) {
  const size_t leading = device.size() - kNzBlockAxes;
  const int64_t* blocks = device.data() + leading;  // columns, rows, rows in one, columns in one
  Shape recommended(device.begin(), device.begin() + static_cast<std::ptrdiff_t>(leading));
  recommended.push_back(blocks[1] * blocks[2]);
  recommended.push_back(blocks[0] * blocks[3]);
  bool fits = wanted && wanted->size() == recommended.size();
  for (size_t i = 0; fits && i < recommended.size(); ++i) {
    const int64_t block = i < leading ? 1 : i == leading ? blocks[2] : blocks[3];
    fits = (*wanted)[i] <= recommended[i] && (*wanted)[i] > recommended[i] - block;
  }
  if (fits) return {};
  return DumpFailure{
      DumpCode::kInvalidParameter,
      fmt::format("The target shape {} is invalid. The recommended shape is {}.",
                  match::TupleText(wanted.value_or(Shape())), match::TupleText(recommended))};
}

// A shape of another number of dimensions than `padded`: its sizes stand where those of `padded`
// are not 1. Nothing if they do not fit.
std::optional<Shape> SpreadOver(const Shape& padded, const Shape& wanted) {
  Shape spread(padded.size(), 1);
  auto next = wanted.begin();
  const auto skip_ones = [&] {
    next = std::find_if(next, wanted.end(), [](int64_t s) { return s != 1; });
  };
  for (size_t i = 0; i < padded.size(); ++i) {
    skip_ones();
    if (padded[i] == 1) continue;
    spread[i] = next == wanted.end() ? 1 : *next++;
    if (spread[i] > padded[i]) return std::nullopt;
  }
  skip_ones();
  return next == wanted.end() ? std::optional(spread) : std::nullopt;
}

LayoutRequest RequestOf(const HostTensor& tensor, int32_t groups, DeviceFormat to) {
  LayoutRequest request;
  request.from = {tensor.format, tensor.sizes};
  request.to =
      tensor.format == DeviceFormat::kFractalNZ && IsMatrixTarget(to) ? DeviceFormat::kND : to;
  request.groups = std::max(groups, 1);
  request.c0 = BlockChannels(acl::FindType(tensor.data_type)->dtype);
  return request;
}

// A plan whose result has the wanted shape, which may have fewer dimensions than the layout.
DumpResult<LayoutPlan> PlanFor(LayoutRequest request, const std::optional<Shape>& wanted) {
  const size_t axes = PlainAxes(request.to).size();
  if (wanted && (axes == 0 || wanted->size() == axes)) {
    request.wanted = *wanted;
  } else if (wanted) {
    const Result<LayoutPlan> padded = PlanLayout(request);
    if (!padded) return DumpFailure{CodeOfPlan(padded.error()), padded.error().message()};
    const std::optional<Shape> spread = SpreadOver(padded->result(), *wanted);
    if (!spread) {
      return DumpFailure{DumpCode::kInvalidShape, fmt::format("{} has no place for shape {}",
                                                              match::TupleText(padded->result()),
                                                              match::TupleText(*wanted))};
    }
    request.wanted = *spread;
  }
  Result<LayoutPlan> plan = PlanLayout(request);
  if (!plan) return DumpFailure{CodeOfPlan(plan.error()), plan.error().message()};
  return *std::move(plan);
}

// The original sizes in one order, where they need exactly what the tensor holds. Fewer sizes than
// axes stand where the tensor has more than one.
std::optional<Shape> ExactSizes(const LayoutRequest& request, DeviceFormat order, Shape original) {
  if (original.size() != PlainAxes(order).size()) {
    const Result<LayoutPlan> padded = PlanLayout({request.from, order});
    if (!padded) return std::nullopt;
    const std::optional<Shape> spread = SpreadOver(padded->result(), original);
    if (!spread) return std::nullopt;
    original = *spread;
  }
  if (!IsExactly(request.from, order, original, request.groups)) return std::nullopt;
  return original;
}

// What the original sizes are in the order of `to`, if all orders of frameworks that fit say the
// same; where none fits they may be in the order of `to` itself.
std::optional<Shape> OriginalIn(const LayoutRequest& request, DeviceFormat to,
                                const Shape& original) {
  std::optional<Shape> found;
  for (const DeviceFormat order : FrameworkOrders()) {
    const std::optional<Shape> exact = ExactSizes(request, order, original);
    if (!exact) continue;
    std::optional<Shape> sizes = SizesIn(order, *exact, to);
    if (!sizes || (found && *found != *sizes)) return std::nullopt;
    found = std::move(sizes);
  }
  return found ? found : ExactSizes(request, to, original);
}

// The original shape as sizes of `request.to`. Nothing: the dump does not tell it. kInvalidShape:
// it would cut elements off, or may be in several orders.
DumpResult<std::optional<Shape>> OriginalSizes(const LayoutRequest& request,
                                               const std::optional<Shape>& original) {
  const DeviceFormat from = request.from.format;
  if (!original || original->empty()) return std::optional<Shape>();
  const bool has_axes =
      !PlainAxes(from).empty() || (!BlockedAxes(from).empty() && from != DeviceFormat::kFractalNZ);
  const bool is_volume = from == DeviceFormat::kNDC1HWC0 && request.to == DeviceFormat::kND;
  const DeviceFormat to = is_volume ? DeviceFormat::kNCDHW : request.to;
  const bool is_empty = std::ranges::find(request.from.sizes, 0) != request.from.sizes.end();
  if (!has_axes || PlainAxes(to).empty() || is_empty) return original;
  if (auto sizes = OriginalIn(request, to, *original)) return sizes;
  return DumpFailure{
      DumpCode::kInvalidShape,
      fmt::format("the original shape {} is not that of {} {} in exactly one order of the axes. "
                  "Name the shape with -s",
                  match::TupleText(*original), DeviceFormatName(from),
                  match::TupleText(request.from.sizes))};
}

DumpResult<HostTensor> Run(const LayoutPlan& plan, const HostTensor& from, DeviceFormat to) {
  const size_t width = acl::FindType(from.data_type)->bits / 8U;
  if (plan.FromElements() * width > from.bytes.size()) {
    return DumpFailure{
        DumpCode::kInvalidDumpData,
        fmt::format("{} bytes of elements (expected {} for shape {})", from.bytes.size(),
                    plan.FromElements() * width, match::TupleText(from.sizes))};
  }
  HostTensor result;
  result.data_type = from.data_type;
  result.format = to;
  result.sizes = plan.result();
  result.owned = KeptBuffer(plan.ToElements() * width);
  plan.Run(width, from.bytes, result.owned.bytes());
  result.bytes = result.owned.bytes();
  return result;
}

}  // namespace

DumpResult<HostTensor> AsDumped(const acl::DumpedTensor& tensor,
                                const std::optional<Shape>& slice) {
  if (tensor.is_cut()) {
    return DumpFailure{DumpCode::kInvalidDumpData,
                       fmt::format("the file is cut: {} bytes of elements (expected {})",
                                   tensor.data.size(), tensor.size)};
  }
  HostTensor result;
  result.data_type = tensor.data_type;
  result.format = tensor.format;
  result.bytes = tensor.data;
  const std::optional<Shape> known = slice ? slice : acl::KnownShape(tensor.shape);
  const acl::TypeInfo* type = acl::FindType(tensor.data_type);
  const uint64_t bits = type == nullptr || type->bits == 0 ? 8 : type->bits;
  result.sizes = known.value_or(Shape{static_cast<int64_t>(tensor.data.size() * 8 / bits)});
  return result;
}

namespace {

// By a converter of the user.
DumpResult<HostTensor> ByOwnConverter(const HostTensor& from, int32_t groups,
                                      const std::optional<Shape>& sizes, DeviceFormat to,
                                      UserCode& own) {
  const Result<acl::Elements> elements = acl::Decode(from.data_type, from.sizes, from.bytes);
  if (!elements) return Failed(DumpCode::kInvalidDumpData, elements.error());
  Result<acl::Elements> converted =
      own.Convert({from.format, to, sizes.value_or(Shape()), std::max(groups, 1)}, *elements);
  if (!converted) return Failed(DumpCode::kConverterFailed, converted.error());
  if (sizes) {
    converted = CroppedTo(*sizes, *std::move(converted));
    if (!converted) return Failed(DumpCode::kInvalidShape, converted.error());
  }
  const std::optional<int32_t> code = acl::CodeOfDType(converted->dtype);
  if (!code) {
    return DumpFailure{DumpCode::kConverterFailed,
                       fmt::format("the converter gave elements of type {}, which devices lack",
                                   InfoOf(converted->dtype).name)};
  }
  HostTensor result;
  result.data_type = *code;
  result.format = to;
  result.sizes = std::move(converted->sizes);
  result.owned = KeptBuffer(converted->bytes.size());
  std::ranges::copy(converted->bytes, result.owned.bytes().begin());
  result.bytes = result.owned.bytes();
  return result;
}

}  // namespace

DumpResult<HostTensor> InLayout(const acl::DumpedTensor& tensor, const std::optional<Shape>& slice,
                                const WantedLayout& wanted, UserCode* own) {
  constexpr size_t kImageAxes = 4;
  DumpResult<HostTensor> dumped = AsDumped(tensor, slice);
  if (!dumped) return dumped;
  PL_TRY_ASSIGN(HostTensor from, Movable(*std::move(dumped)));
  const bool is_image = from.format == DeviceFormat::kNCHW || from.format == DeviceFormat::kNHWC ||
                        from.format == DeviceFormat::kHWCN;
  if (is_image && from.sizes.size() != kImageAxes) from.format = DeviceFormat::kND;
  if (own != nullptr && own->Converts(from.format, wanted.format)) {
    const std::optional<Shape> sizes =
        wanted.sizes ? wanted.sizes : acl::KnownShape(tensor.original_shape);
    return ByOwnConverter(from, tensor.sub_format, sizes, wanted.format, *own);
  }
  const bool is_nz = from.format == DeviceFormat::kFractalNZ;
  // Vectors are not cut into blocks.
  const bool is_vector = is_nz && from.sizes.size() < kNzBlockAxes && IsMatrixTarget(wanted.format);
  if (is_vector) from.format = wanted.format;
  if (from.format == wanted.format && !wanted.sizes) return from;
  const LayoutRequest request = RequestOf(from, tensor.sub_format, wanted.format);
  std::optional<Shape> sizes = wanted.sizes;
  // What lies on a device has its own sizes, which follow from the plain ones.
  const bool is_for_device = !BlockedAxes(wanted.format).empty();
  if (!sizes && !is_for_device) {
    PL_TRY_ASSIGN(sizes, OriginalSizes(request, acl::KnownShape(tensor.original_shape)));
  }
  if (from.format == DeviceFormat::kFractalNZ && from.sizes.size() >= kNzBlockAxes) {
    PL_TRY(CheckFractalNz(from.sizes, sizes));
  }
  PL_TRY_ASSIGN(const LayoutPlan plan, PlanFor(request, sizes));
  return Run(plan, from, wanted.format);
}

}  // namespace plumbline::operators
