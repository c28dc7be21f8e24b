#include "pipeline/operators/operator_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/acl_types.h"
#include "pipeline/operators/plain_tensor.h"
#include "tensor/device_shape.h"
#include "tensor/strided_copy.h"

namespace plumbline::pipeline {
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

// The sizes of one thread's part, which the message has only of the whole. An original shape is of
// the whole too.
void TakePart(std::vector<DumpedTensor>& tensors, const std::vector<Shape>& parts) {
  for (size_t i = 0; i < std::min(tensors.size(), parts.size()); ++i) {
    if (parts[i].empty()) continue;
    tensors[i].shape = DimsOf(parts[i]);
  }
}

// The dimensions in which an output is cut.
std::vector<size_t> CutAxes(const Shape& cuts) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i] != 1) axes.push_back(i);
  }
  return axes;
}

// Several parts of one tensor, behind each other along `axis`.
Result<acl::Elements> Concatenate(const std::vector<acl::Elements>& parts, size_t axis) {
  const acl::Elements& first = parts.front();
  acl::Elements whole;
  whole.dtype = first.dtype;
  whole.sizes = first.sizes;
  if (axis >= whole.sizes.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the parts are cut in dimension {} (expected one below {})", axis,
                             whole.sizes.size()));
  }
  whole.sizes[axis] = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape expected = first.sizes;
    expected[axis] = parts[i].sizes.size() > axis ? parts[i].sizes[axis] : expected[axis];
    if (parts[i].sizes != expected || parts[i].dtype != first.dtype) {
      return Error(
          ErrorCode::kCorrupt,
          fmt::format("part {} is {} {} (expected {} {})", i, InfoOf(parts[i].dtype).name,
                      ShapeText(parts[i].sizes), InfoOf(first.dtype).name, ShapeText(expected)));
    }
    whole.sizes[axis] += parts[i].sizes[axis];
  }
  size_t rows = 1;
  for (size_t i = 0; i < axis; ++i) rows *= static_cast<size_t>(whole.sizes[i]);
  size_t bytes_of_all = 0;
  for (const acl::Elements& part : parts) bytes_of_all += part.bytes.size();
  if (bytes_of_all == 0) return whole;  // there may be any number of rows
  whole.owned.reserve(bytes_of_all);
  for (size_t row = 0; row < rows; ++row) {
    for (const acl::Elements& part : parts) {
      const size_t bytes = part.bytes.size() / rows;
      const auto run = part.bytes.subspan(row * bytes, bytes);
      whole.owned.insert(whole.owned.end(), run.begin(), run.end());
    }
  }
  return whole;
}

// Whether two of the boxes have a point in common.
bool DoOverlap(const std::vector<Shape>& starts, const std::vector<acl::Elements>& parts) {
  const auto meet = [&](size_t a, size_t b) {
    for (size_t i = 0; i < starts[a].size(); ++i) {
      if (starts[a][i] + parts[a].sizes[i] <= starts[b][i] ||
          starts[b][i] + parts[b].sizes[i] <= starts[a][i]) {
        return false;
      }
    }
    return true;
  };
  for (size_t a = 0; a < parts.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (meet(a, b)) return true;
    }
  }
  return false;
}

// Several parts of one tensor at their places; they must fill it.
Result<acl::Elements> Assemble(const std::vector<acl::Elements>& parts,
                               const std::vector<Shape>& starts) {
  constexpr int64_t kMost = int64_t{1} << 48;  // elements that a device has room for
  const auto wrong = [](std::string_view what) {
    return Error(ErrorCode::kCorrupt, fmt::format("the parts {} the output", what));
  };
  acl::Elements whole;
  whole.dtype = parts.front().dtype;
  whole.sizes = Shape(parts.front().sizes.size(), 0);
  size_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape& sizes = parts[i].sizes;
    if (sizes.size() != whole.sizes.size() || starts[i].size() != sizes.size()) {
      return wrong("have other dimensions than");
    }
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (starts[i][axis] < 0 || starts[i][axis] > kMost || sizes[axis] > kMost) {
        return wrong("begin outside of");
      }
      whole.sizes[axis] = std::max(whole.sizes[axis], starts[i][axis] + sizes[axis]);
    }
    bytes += parts[i].bytes.size();
  }
  const size_t width = InfoOf(whole.dtype).size_bytes;
  const Result<int64_t> count = ElementCount(whole.sizes);
  if (!count || static_cast<size_t>(*count) != bytes / width || DoOverlap(starts, parts)) {
    return wrong("do not fill");
  }
  whole.owned.resize(bytes);
  const std::vector<int64_t> strides = ContiguousStrides(whole.sizes);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes.empty()) continue;
    const std::vector<int64_t> from = ContiguousStrides(parts[i].sizes);
    StridedCopy copy;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      copy.to_offset += starts[i][axis] * strides[axis];
      copy.axes.push_back({parts[i].sizes[axis], from[axis], strides[axis]});
    }
    CopyStrided(copy, width, parts[i].bytes.data(), whole.owned.data());
  }
  return whole;
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
    tensors.message_ = tensors.files_.front().message();
    return tensors;
  }
  PL_TRY(tensors.OpenSlices(slices));
  return tensors;
}

Status OperatorTensors::OpenSlices(const load::OperatorSlices& slices) {
  std::optional<acl::ThreadSlices> facts;
  for (const load::OperatorSlice& slice : slices.files) {
    PL_TRY_ASSIGN(acl::DumpFile file, acl::DumpFile::Open(slice.path));
    files_.push_back(std::move(file));
    acl::Message part = files_.back().message();
    Result<std::optional<acl::ThreadSlices>> read = acl::ReadThreadSlices(part);
    if (!read) return read.error().In(slice.path);
    if (*read && (*read)->is_automatic) {
      const auto thread = static_cast<size_t>(slice.number);
      if (thread < (*read)->inputs.size()) TakePart(part.inputs, (*read)->inputs[thread]);
      if (thread < (*read)->outputs.size()) TakePart(part.outputs, (*read)->outputs[thread]);
    }
    const bool has_starts =
        *read && static_cast<size_t>(slice.number) < (*read)->output_starts.size();
    starts_.push_back(has_starts ? (*read)->output_starts[static_cast<size_t>(slice.number)]
                                 : std::vector<Shape>());
    if (facts && *read && (*read)->instance_count != facts->instance_count) {
      is_whole_ = false;
      remark_ = fmt::format("The parts say that there are {} and {} of them.",
                            facts->instance_count, (*read)->instance_count);
    }
    if (!facts) facts = *std::move(read);
    parts_.push_back(std::move(part));
  }
  if (slices.are_joined && facts) {
    const Status joined = Join(slices, *facts);
    if (!joined) return joined.error().In(slices.files.front().path);
  } else {
    // Without the attribute nothing tells how the parts belong together.
    message_ = parts_.back();
    if (slices.are_joined && parts_.size() > 1) {
      is_whole_ = false;
      remark_ = "The attribute that tells how the parts of the operator fit together is missing.";
    }
  }
  for (auto* side : {&message_.inputs, &message_.outputs}) {
    for (DumpedTensor& tensor : *side) {
      if (!FitsOriginal(tensor)) tensor.original_shape.reset();
    }
  }
  return {};
}

Status OperatorTensors::Join(const load::OperatorSlices& slices, const acl::ThreadSlices& facts) {
  if (static_cast<int64_t>(parts_.size()) != facts.instance_count) {
    is_whole_ = false;
    remark_ = fmt::format("{} ({} vs {}).", kIncomplete, parts_.size(), facts.instance_count);
  }
  const bool is_cut = std::ranges::any_of(facts.output_cuts,
                                          [](const Shape& cuts) { return !CutAxes(cuts).empty(); });
  if (!is_cut) {
    const auto newest = std::ranges::max_element(slices.files, {}, &load::OperatorSlice::timestamp);
    message_ = parts_[static_cast<size_t>(newest - slices.files.begin())];
    if (parts_.size() > 1) {
      remark_ += fmt::format("{}No output is cut: of {} files the newest was taken.",
                             remark_.empty() ? "" : " ", parts_.size());
    }
    return {};
  }
  message_ = parts_.front();
  for (const acl::Message& part : parts_) {
    if (part.outputs.size() == message_.outputs.size()) continue;
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the parts of the operator have {} and {} outputs",
                             message_.outputs.size(), part.outputs.size()));
  }
  for (size_t i = 0; i < std::min(message_.outputs.size(), facts.output_cuts.size()); ++i) {
    const std::vector<size_t> axes = CutAxes(facts.output_cuts[i]);
    if (!axes.empty() && parts_.size() > 1) {
      const Status joined = JoinOutput(i, axes);
      if (!joined) return joined.error().In(fmt::format("output {}", i));
    }
  }
  return {};
}

Status OperatorTensors::JoinOutput(size_t index, const std::vector<size_t>& axes) {
  std::vector<Shape> starts;
  for (const std::vector<Shape>& of_part : starts_) {
    if (index < of_part.size()) starts.push_back(of_part[index]);
  }
  if (axes.size() > 1 && starts.size() < parts_.size()) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("cut in {} dimensions, and nothing says where (expected one). Compare "
                             "the parts one by one, with -ffts",
                             axes.size()));
  }
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
  PL_TRY_ASSIGN(acl::Elements whole,
                axes.size() > 1 ? Assemble(parts, starts) : Concatenate(parts, axes.front()));
  DumpedTensor& output = message_.outputs[index];
  const acl::TypeInfo* type = acl::FindType(output.data_type);
  if (type == nullptr || type->encoding != acl::Encoding::kPlain) {
    output.data_type = acl::CodeOfDType(whole.dtype).value_or(output.data_type);
  }
  output.shape = DimsOf(whole.sizes);
  output.data = joined_.emplace_back(std::move(whole.owned));
  output.size = output.data.size();
  FindOriginal(tensors, output);
  return {};
}

}  // namespace plumbline::pipeline
