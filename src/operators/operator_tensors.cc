#include "operators/operator_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "operators/slice_assembly.h"
#include "tensor/device_blocks.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

namespace {

int64_t TensorGroups(const acl::DumpedTensor& tensor) { return std::max(tensor.sub_format, 1); }

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
  request.groups = TensorGroups(tensor);
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
  return plumbline::IsExactly({format, *device}, layout.format, layout.sizes, TensorGroups(tensor));
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
                              layout->sizes, TensorGroups(tensor)},
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

namespace {

using acl::DumpedTensor;

constexpr const char* kIncomplete =
    "This is a FFTS+ mode dump data, The number of files does not match the number of thread";

acl::Dims DimsOf(const Shape& sizes) { return acl::Dims(sizes.begin(), sizes.end()); }

// Whether the original shape is that of the tensor as it lies on the device.
bool FitsOriginal(const DumpedTensor& tensor) {
  const std::optional<PlainLayout> layout = OwnLayout(tensor);
  return layout && IsExactly(tensor, *layout);
}

// Leaves out original shapes that are of something else than the tensor, as of the whole of a part.
void DropOtherOriginals(std::vector<DumpedTensor>& tensors) {
  for (DumpedTensor& tensor : tensors) {
    if (!FitsOriginal(tensor)) tensor.original_shape.reset();
  }
}

// The sizes of one thread's part, which the message has only of the whole. An original shape is of
// the whole too.
void TakePart(std::vector<DumpedTensor>& tensors, const std::vector<Shape>& parts) {
  for (size_t i = 0; i < std::min(tensors.size(), parts.size()); ++i) {
    if (parts[i].empty()) continue;
    tensors[i].shape = DimsOf(parts[i]);
  }
}

// The original shape of the whole: as the first part has it, or that with one dimension summed up
// over the parts where only this gives the sizes on the device. Nothing where none fits.
void FindOriginal(const std::vector<const DumpedTensor*>& parts, DumpedTensor& whole) {
  if (!whole.original_shape || FitsOriginal(whole)) return;
  std::optional<acl::Dims> found;
  for (size_t axis = 0; axis < parts.front()->original_shape->size(); ++axis) {
    acl::Dims sizes = *parts.front()->original_shape;
    sizes[axis] = 0;
    for (const DumpedTensor* part : parts) {
      const bool has_axis = part->original_shape && part->original_shape->size() == sizes.size();
      if (has_axis) sizes[axis] += (*part->original_shape)[axis];
    }
    DumpedTensor candidate = whole;
    candidate.original_shape = sizes;
    if (!FitsOriginal(candidate)) continue;
    if (found && *found != sizes) {
      whole.original_shape.reset();
      return;
    }
    found = std::move(sizes);
  }
  whole.original_shape = std::move(found);
}

}  // namespace

Result<OperatorTensors> OperatorTensors::Open(const std::string& path, const std::string& file_name,
                                              const load::OperatorSlices& slices) {
  OperatorTensors tensors;
  if (slices.files.empty()) {
    PL_TRY_ASSIGN(acl::DumpFile file, acl::DumpFile::Open(path, file_name));
    tensors.files_.push_back(std::move(file));
    tensors.is_one_file_ = true;
    return tensors;
  }
  PL_TRY(tensors.OpenSlices(slices));
  return tensors;
}

Status OperatorTensors::OpenSlices(const load::OperatorSlices& slices) {
  for (const load::OperatorSlice& slice : slices.files) PL_TRY(OpenPart(slice));
  const Status counted = CheckNumbers(slices);
  if (!counted) return counted.error().In(slices.files.front().path);
  if (slices.are_joined && facts_) {
    const Status joined = Join(slices);
    if (!joined) return joined.error().In(slices.files.front().path);
    const bool may_join = is_whole_ && !lacks_attribute_ && parts_.size() > 1;
    for (size_t i = 0; may_join && i < message_.inputs.size(); ++i) JoinInput(i);
  } else {
    message_ = parts_.back();
  }
  if (slices.are_joined && lacks_attribute_ && parts_.size() > 1) {
    is_whole_ = false;
    AddRemark("The attribute that tells how the parts of the operator fit together is missing.");
  }
  are_joined_ = slices.are_joined;
  DropOtherOriginals(message_.inputs);
  DropOtherOriginals(message_.outputs);
  for (acl::Message& part : parts_) DropOtherOriginals(part.inputs);
  return {};
}

void OperatorTensors::AddRemark(const std::string& sentence) {
  remark_ += (remark_.empty() ? "" : " ") + sentence;
}

Status OperatorTensors::OpenPart(const load::OperatorSlice& slice) {
  PL_TRY_ASSIGN(acl::DumpFile file, acl::DumpFile::Open(slice.path));
  files_.push_back(std::move(file));
  numbers_.push_back(slice.number);
  acl::Message& part = parts_.emplace_back(files_.back().message());
  std::vector<Shape>& starts = starts_.emplace_back();
  std::vector<Shape>& input_starts = input_starts_.emplace_back();
  Result<std::optional<acl::ThreadSlices>> read = acl::ReadThreadSlices(part);
  if (!read) return read.error().In(slice.path);
  part.attributes.clear();  // of thousands of parts, each of which has the places of all
  if (!*read) {
    lacks_attribute_ = true;
    return {};
  }
  acl::ThreadSlices& facts = **read;
  const auto thread = static_cast<size_t>(slice.number);
  if (facts.is_automatic) {
    if (thread < facts.inputs.size()) TakePart(part.inputs, facts.inputs[thread]);
    if (thread < facts.outputs.size()) TakePart(part.outputs, facts.outputs[thread]);
    if (thread < facts.output_starts.size()) starts = std::move(facts.output_starts[thread]);
    if (thread < facts.input_starts.size()) input_starts = std::move(facts.input_starts[thread]);
  }
  if (facts_ &&
      (facts.is_automatic != facts_->is_automatic || facts.output_cuts != facts_->output_cuts)) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: attribute 0: another threadMode or outputCutList than that of "
                             "part {} (expected the same in all parts of an operator)",
                             slice.path, numbers_.front()));
  }
  if (facts_ && facts.instance_count != facts_->instance_count) {
    if (is_whole_) {
      AddRemark(fmt::format("The parts say that there are {} and {} of them.",
                            facts_->instance_count, facts.instance_count));
    }
    is_whole_ = false;
  }
  if (!facts_) facts_ = std::move(facts);
  return {};
}

Status OperatorTensors::CheckNumbers(const load::OperatorSlices& slices) {
  constexpr size_t kMostNamed = 3;
  if (!slices.numbers) return {};
  const std::vector<int64_t>& numbers = *slices.numbers;
  const auto size = static_cast<int64_t>(numbers.size());
  const int64_t first = facts_ && facts_->is_automatic ? 0 : numbers.front();
  const int64_t count = facts_ ? facts_->instance_count : numbers.back() - first + 1;
  std::vector<int64_t> missing;
  for (int64_t i = 0; i < count && missing.size() < kMostNamed; ++i) {
    if (!std::ranges::binary_search(numbers, first + i)) missing.push_back(first + i);
  }
  if (size == count && missing.empty()) return {};
  is_whole_ = false;
  const std::string absent =
      missing.empty() ? ""
                      : fmt::format(" Number {}{} is not there.", fmt::join(missing, ", "),
                                    missing.size() < kMostNamed ? "" : ", ...");
  if (size == count && slices.are_joined) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the parts of the operator have the numbers {} to {} (expected {} to "
                             "{}).{} Copy the files again, or correct their names",
                             numbers.front(), numbers.back(), first, first + count - 1, absent));
  }
  AddRemark(fmt::format("{} ({} vs {}).{}", kIncomplete, size, count, absent));
  return {};
}

Status OperatorTensors::Join(const load::OperatorSlices& slices) {
  const std::vector<Shape>& cuts = facts_->output_cuts;
  const bool is_cut =
      std::ranges::any_of(cuts, [](const Shape& one) { return !CutAxes(one).empty(); });
  size_t taken = 0;
  if (!is_cut) {
    const auto newest = std::ranges::max_element(slices.files, {}, &load::OperatorSlice::timestamp);
    taken = static_cast<size_t>(newest - slices.files.begin());
    if (parts_.size() > 1) {
      AddRemark(fmt::format("No output is cut: of {} files the newest was taken.", parts_.size()));
    }
  }
  message_ = parts_[taken];
  for (const acl::Message& part : parts_) {
    if (!is_cut || part.outputs.size() == message_.outputs.size()) continue;
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the parts of the operator have {} and {} outputs",
                             message_.outputs.size(), part.outputs.size()));
  }
  for (size_t i = 0; i < message_.outputs.size(); ++i) {
    const std::vector<size_t> axes = i < cuts.size() ? CutAxes(cuts[i]) : std::vector<size_t>();
    if (axes.empty()) {
      CompareUncut(i, taken);
    } else if (parts_.size() > 1) {
      const Status joined = JoinOutput(i, axes);
      if (!joined) return joined.error().In(fmt::format("output {}", i));
    }
    if (!is_whole_) continue;
    const Status fits = CheckSizes(i, taken);
    if (fits) continue;
    const Error error = fits.error().In(fmt::format("output {}", i));
    if (!axes.empty()) return error;
    // As the file has it, but it does not pass.
    std::string& disagreement = disagreements_[i];
    disagreement += (disagreement.empty() ? "" : " ") + error.message() + ".";
  }
  return {};
}

void OperatorTensors::CompareUncut(size_t index, size_t taken) {
  constexpr size_t kMostNamed = 3;
  const DumpedTensor& mine = message_.outputs[index];
  std::vector<int64_t> others;
  for (size_t i = 0; i < parts_.size() && others.size() < kMostNamed; ++i) {
    const std::vector<DumpedTensor>& outputs = parts_[i].outputs;
    const bool is_same =
        outputs.size() == message_.outputs.size() && outputs[index].data_type == mine.data_type &&
        outputs[index].format == mine.format && outputs[index].shape == mine.shape &&
        std::ranges::equal(outputs[index].data, mine.data);
    if (!is_same) others.push_back(numbers_[i]);
  }
  if (others.empty()) return;
  disagreements_[index] = fmt::format(
      "Output {} is not cut, and part {}{} has another one than part {}, which was taken.", index,
      fmt::join(others, ", "), others.size() < kMostNamed ? "" : ", ...", numbers_[taken]);
}

Status OperatorTensors::CheckSizes(size_t index, size_t taken) const {
  const DumpedTensor& joined = message_.outputs[index];
  const DumpedTensor& stated = files_[taken].message().outputs[index];
  // The sizes in a message are those of the whole, or those of the part itself.
  if (stated.shape == joined.shape || stated.shape == parts_[taken].outputs[index].shape) return {};
  const std::optional<Shape> got = acl::KnownShape(joined.shape);
  const std::optional<Shape> expected = acl::KnownShape(stated.shape);
  if (!got || !expected) return {};
  return Error(ErrorCode::kCorrupt,
               fmt::format("the parts make {} (expected {}, the sizes in part {})", ShapeText(*got),
                           ShapeText(*expected), numbers_[taken]));
}

Status OperatorTensors::JoinOutput(size_t index, const std::vector<size_t>& axes) {
  std::vector<Shape> starts;
  std::vector<int64_t> placeless;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const bool has_start = index < starts_[i].size() && !starts_[i][index].empty();
    if (has_start) starts.push_back(starts_[i][index]);
    if (!has_start) placeless.push_back(numbers_[i]);
  }
  if (axes.size() > 1 && !placeless.empty()) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("cut in the dimensions {}, and output_tensor_slice in attribute 0 has "
                             "no bounds of part {} (expected \"lower\" and \"higher\" of each "
                             "dimension). Compare the parts one by one, with -ffts",
                             fmt::join(axes, " and "), fmt::join(placeless, ", ")));
  }
  // With parts missing there are no places to fill; what is there follows each other.
  const bool has_places = placeless.empty() && (is_whole_ || axes.size() > 1);
  std::vector<acl::Elements> parts;
  std::vector<const DumpedTensor*> tensors;
  for (const acl::Message& part : parts_) {
    tensors.push_back(&part.outputs[index]);
    if (part.outputs[index].data_type != tensors.front()->data_type) {
      return Error(ErrorCode::kCorrupt, fmt::format("the parts are of the types {} and {}",
                                                    acl::TypeName(tensors.front()->data_type),
                                                    acl::TypeName(part.outputs[index].data_type)));
    }
    PL_TRY_ASSIGN(acl::Elements elements, acl::ElementsOf(part.outputs[index]));
    parts.push_back(std::move(elements));
  }
  PL_TRY_ASSIGN(acl::Elements whole, has_places ? PlaceParts(parts, starts, axes)
                                                : ConcatenateParts(parts, axes.front()));
  TakeJoined(tensors, std::move(whole), message_.outputs[index]);
  return {};
}

void OperatorTensors::TakeJoined(const std::vector<const DumpedTensor*>& parts, acl::Elements whole,
                                 DumpedTensor& tensor) {
  const acl::TypeInfo* type = acl::FindType(tensor.data_type);
  if (type == nullptr || type->encoding != acl::Encoding::kPlain) {
    tensor.data_type = acl::CodeOfDType(whole.dtype).value_or(tensor.data_type);
  }
  tensor.shape = DimsOf(whole.sizes);
  tensor.data = joined_.emplace_back(std::move(whole.owned));
  tensor.size = tensor.data.size();
  FindOriginal(parts, tensor);
}

void OperatorTensors::JoinInput(size_t index) {
  std::vector<Shape> starts;
  std::vector<const DumpedTensor*> tensors;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (index >= parts_[i].inputs.size() || index >= input_starts_[i].size()) return;
    starts.push_back(input_starts_[i][index]);
    tensors.push_back(&parts_[i].inputs[index]);
    const bool fits = !starts.back().empty() &&
                      tensors.back()->data_type == tensors.front()->data_type &&
                      tensors.back()->format == tensors.front()->format;
    if (!fits) return;
  }
  if (std::ranges::count(starts, starts.front()) == std::ssize(starts)) return;  // not cut
  std::vector<acl::Elements> parts;
  for (const DumpedTensor* tensor : tensors) {
    Result<acl::Elements> elements = acl::ElementsOf(*tensor);
    if (!elements) return;
    parts.push_back(*std::move(elements));
  }
  Result<acl::Elements> whole = CoverParts(parts, starts);
  if (!whole) return;
  // The sizes in a message are those of the whole, or those of the part itself.
  const std::optional<Shape> stated = acl::KnownShape(files_.front().message().inputs[index].shape);
  const std::optional<Shape> part = acl::KnownShape(tensors.front()->shape);
  if (stated && stated != whole->sizes && stated != part) return;
  TakeJoined(tensors, *std::move(whole), message_.inputs[index]);
  joined_inputs_.insert(index);
}

}  // namespace plumbline::operators
