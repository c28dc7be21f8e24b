#include "precheck/mindspore_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/json/dump_json.h"
#include "load/run_reader.h"
#include "plumbline/record.h"
#include "precheck/api_inventory.h"
#include "precheck/index_rules.h"
#include "precheck/input_data.h"
#include "record/run_files.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kMindSpore = "mindspore";
constexpr std::string_view kMindTorch = "mindtorch";

// Methods of mindspore.Tensor that PyTorch has under the same name, as upstream lists them.
constexpr std::string_view kTensorMethods[] = {"add",
                                               "add_",
                                               "addmm_",
                                               "all",
                                               "allclose",
                                               "any",
                                               "bool",
                                               "byte",
                                               "ceil",
                                               "clamp",
                                               "clamp_",
                                               "clone",
                                               "contiguous",
                                               "copy_",
                                               "cos",
                                               "cumprod",
                                               "expand_as",
                                               "fill_",
                                               "flatten",
                                               "float",
                                               "floor_",
                                               "half",
                                               "int",
                                               "is_contiguous",
                                               "isnan",
                                               "item",
                                               "log",
                                               "log2",
                                               "long",
                                               "masked_fill",
                                               "max",
                                               "mean",
                                               "min",
                                               "numel",
                                               "numpy",
                                               "repeat",
                                               "repeat_interleave",
                                               "reshape",
                                               "round",
                                               "select",
                                               "sin",
                                               "size",
                                               "split",
                                               "sqrt",
                                               "square",
                                               "sub",
                                               "swapaxes",
                                               "t",
                                               "to",
                                               "tolist",
                                               "topk",
                                               "transpose",
                                               "trunc",
                                               "type",
                                               "type_as",
                                               "unsqueeze",
                                               "view",
                                               "view_as",
                                               "zero_"};

// Element types that both frameworks compute with.
constexpr DType kSharedTypes[] = {DType::kInt8,  DType::kUInt8,   DType::kInt16,   DType::kInt32,
                                  DType::kInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64,
                                  DType::kBool,  DType::kBFloat16};

template <class List, class T>
bool Holds(const List& list, const T& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

// An entry's name: "Mint.where.0" and "forward" of "Mint.where.0.forward".
struct EntryName {
  std::string_view call, direction;
};

EntryName SplitEntry(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

const Value* MemberOf(const ValueMap& object, std::string_view key) {
  for (const auto& [name, value] : object) {
    if (name == key) return &value;
  }
  return nullptr;
}

Skip BadArgument(std::string_view path, std::string_view what) {
  return {SkipCause::kBadArgument, fmt::format("{}: {}", path, what)};
}

// Builds the values of one memory: the inputs of a call, or what was recorded of its outputs.
class ValueBuilder {
 public:
  // Tensors are read from `directory`; without one they are drawn.
  ValueBuilder(std::string_view call, uint64_t seed, const std::string* directory)
      : call_(call), seed_(seed), directory_(directory) {}

  // Where values stand that are built next, for messages and for the generator.
  void SetDirection(std::string_view direction) { direction_ = direction; }

  OrSkip<CallValue> Build(const Value& value, const std::string& path);

  std::vector<TensorFill> fills;
  size_t bytes = 0;

 private:
  OrSkip<CallValue> BuildTensor(const TensorRecord& record, const std::string& path);
  OrSkip<CallValue> BuildObject(const ValueMap& object, const std::string& path);
  static OrSkip<CallValue> BuildSlice(const Value& value, const std::string& path);
  OrSkip<TensorFill> FillOf(const TensorRecord& record, DType dtype, const std::string& path);

  std::string_view call_, direction_;
  uint64_t seed_;
  const std::string* directory_;
};

// Lists become tuples, as in upstream: recordings do not tell the two apart, and APIs that take the
// one take the other.
OrSkip<CallValue> ValueBuilder::Build(const Value& value, const std::string& path) {
  if (value.is_null()) return CallValue();
  if (const auto* record = value.As<TensorRecord>()) return BuildTensor(*record, path);
  if (const auto* object = value.As<ValueMap>()) return BuildObject(*object, path);
  const auto* list = value.As<ValueList>();
  if (list == nullptr) return BadArgument(path, "a bare value (expected an object with its type)");
  CallSequence tuple{Sequence::kTuple, {}};
  for (size_t i = 0; i < list->size(); ++i) {
    auto item = Build((*list)[i], fmt::format("{}.{}", path, i));
    if (!item) return item;
    tuple.items.push_back(*std::move(item));
  }
  return CallValue(std::move(tuple));
}

// Where the elements come from. A file is looked at here already, so that a missing one skips its
// call before any executor is asked.
OrSkip<TensorFill> ValueBuilder::FillOf(const TensorRecord& record, DType dtype,
                                        const std::string& path) {
  TensorFill fill{.offset = bytes, .dtype = dtype, .shape = record.shape, .source = {}};
  if (directory_ == nullptr) {
    auto range = RangeOf(record, dtype);
    if (!range) return std::move(range).error();
    GeneratedData data;
    data.key = StreamKey(seed_, {call_, direction_, path});
    data.range = *range;
    fill.source = data;
    return fill;
  }
  if (!record.data_name) {
    return Skip{SkipCause::kMissingData, fmt::format("{}: no data_name", path)};
  }
  const auto file = load::OpenTensorIn(*directory_, *record.data_name);
  if (!file) return Skip{SkipCause::kMissingData, file.error().message()};
  const TensorView view = file->view();
  if (!std::equal(view.sizes.begin(), view.sizes.end(), record.shape.begin(), record.shape.end())) {
    return Skip{SkipCause::kMissingData,
                fmt::format("{}: the shape is ({}), and ({}) in dump.json", *record.data_name,
                            fmt::join(view.sizes, ", "), fmt::join(record.shape, ", "))};
  }
  // NumPy has no bfloat16; recorders write float32, which holds all of its values.
  const DType stored = dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
  if (view.dtype != stored && view.dtype != dtype) {
    return Skip{SkipCause::kMissingData,
                fmt::format("{}: holds {} (expected {})", *record.data_name,
                            InfoOf(view.dtype).name, InfoOf(stored).name)};
  }
  fill.source = RecordedData{*directory_, *record.data_name, view.dtype};
  return fill;
}

OrSkip<CallValue> ValueBuilder::BuildTensor(const TensorRecord& record, const std::string& path) {
  if (!record.type.ends_with(".Tensor") && !record.type.ends_with(".Parameter")) {
    return BadArgument(path, fmt::format("type {} (expected mindspore.Tensor)", record.type));
  }
  // Types that only one side has would make the other one compute something else.
  const std::optional<DType> dtype = ParseDType(record.dtype_text);
  if (!dtype || !Holds(kSharedTypes, *dtype)) {
    return BadArgument(
        path, fmt::format("dtype {}, which PyTorch has no counterpart of", record.dtype_text));
  }
  const Result<int64_t> count = ElementCount(record.shape);
  const size_t size = InfoOf(*dtype).size_bytes;
  if (!count || static_cast<size_t>(*count) > SIZE_MAX / 2 / size - bytes) {
    return BadArgument(path, "a shape that no memory holds");
  }
  auto fill = FillOf(record, *dtype, path);
  if (!fill) return std::move(fill).error();
  TensorPlace place;
  place.dtype = *dtype;
  place.shape = record.shape;
  place.offset = bytes;
  fills.push_back(*std::move(fill));
  const size_t end = bytes + static_cast<size_t>(*count) * size;
  bytes = (end + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  return CallValue(std::move(place));
}

// [start, stop, step], each an integer or null.
OrSkip<CallValue> ValueBuilder::BuildSlice(const Value& value, const std::string& path) {
  const auto* parts = value.As<ValueList>();
  if (parts == nullptr || parts->size() != 3) {
    return BadArgument(path, "a slice that is not [start, stop, step]");
  }
  CallSequence slice{Sequence::kSlice, {}};
  for (const Value& part : *parts) {
    const auto* number = part.As<int64_t>();
    if (number == nullptr && !part.is_null()) return BadArgument(path, "a slice of other values");
    slice.items.push_back(number == nullptr ? CallValue() : CallValue(*number));
  }
  return CallValue(std::move(slice));
}

// {"type": ..., "value": ...}, as recorders write everything that is no tensor.
OrSkip<CallValue> ValueBuilder::BuildObject(const ValueMap& object, const std::string& path) {
  const Value* type = MemberOf(object, dump_json::kType);
  const Value* value = MemberOf(object, "value");
  const auto* name = type == nullptr ? nullptr : type->As<std::string>();
  if (name == nullptr) return BadArgument(path, "an object without type");
  if (*name == "ellipsis") return CallValue(SpecialValue{Special::kEllipsis, {}, "..."});
  if (value == nullptr || value->is_null()) {
    return BadArgument(path, fmt::format("type {} without a value", *name));
  }
  if (*name == "slice") return BuildSlice(*value, path);
  if (*name == "torch.Size" && value->As<ValueList>() != nullptr) return Build(*value, path);
  const auto* text = value->As<std::string>();
  if (name->ends_with(".dtype") && text != nullptr) {
    const std::optional<DType> dtype = ParseDType(*text);
    if (!dtype) return BadArgument(path, fmt::format("dtype {}", *text));
    // Both sides read PyTorch's spelling.
    return CallValue(SpecialValue{Special::kDType, {}, std::string(InfoOf(*dtype).torch_name)});
  }
  if (*name == "str" && text != nullptr) return CallValue(*text);
  const auto* truth = value->As<bool>();
  if (truth != nullptr) return CallValue(*truth);
  const auto* integer = value->As<int64_t>();
  const auto* real = value->As<double>();
  // Scalars of NumPy are recorded by the name of their type alone: "int64", "float32".
  const bool is_real = name->starts_with("float") || real != nullptr;
  if (is_real && (integer != nullptr || real != nullptr)) {
    return CallValue(real != nullptr ? *real : static_cast<double>(*integer));
  }
  if (integer != nullptr && (name->starts_with("int") || name->starts_with("uint"))) {
    return CallValue(*integer);
  }
  return BadArgument(path,
                     fmt::format("type {} (expected mindspore.Tensor, bool, int, float, slice, "
                                 "str or mindspore.dtype)",
                                 *name));
}

// Every tensor of a value, depth first.
void CollectTensors(CallValue& value, std::vector<TensorPlace*>& tensors) {
  if (auto* tensor = value.As<TensorPlace>()) {
    tensors.push_back(tensor);
  } else if (auto* items = value.As<CallSequence>()) {
    for (CallValue& item : items->items) CollectTensors(item, tensors);
  } else if (auto* members = value.As<CallMap>()) {
    for (auto& member : *members) CollectTensors(member.second, tensors);
  }
}

// Lists within the list, as of the gradients of a list of tensors, become its own items.
void Flatten(CallSequence& list) {
  std::vector<CallValue> flat;
  for (CallValue& item : list.items) {
    if (auto* inner = item.As<CallSequence>()) {
      Flatten(*inner);
      for (CallValue& value : inner->items) flat.push_back(std::move(value));
    } else {
      flat.push_back(std::move(item));
    }
  }
  list.items = std::move(flat);
}

// A gradient has the shape of what it is of; null is of anything.
bool HasShapeOf(const CallValue& gradient, const TensorPlace& tensor) {
  const auto* place = gradient.As<TensorPlace>();
  return gradient.is_null() || (place != nullptr && place->shape == tensor.shape);
}

// Recorders note one gradient per argument, null for what is no tensor or needs none; some omit
// the nulls at the end, or those of values that are no tensors. `recorded` becomes one value per
// tensor of `args` and `kwargs` if it fits in one of these ways.
GradientOrder AlignGradients(MindSporeCall& made, CallSequence& recorded) {
  std::vector<TensorPlace*> tensors;
  std::vector<size_t> argument_of;
  std::vector<CallValue>& args = made.call.args;
  for (size_t i = 0; i < args.size(); ++i) {
    CollectTensors(args[i], tensors);
    argument_of.resize(tensors.size(), i);
  }
  const size_t positional = tensors.size();
  Flatten(recorded);
  for (auto& member : made.call.kwargs) CollectTensors(member.second, tensors);
  const bool is_by_tensor = recorded.items.size() == positional && positional != args.size();
  std::vector<CallValue> aligned(tensors.size());
  std::vector<bool> is_used(recorded.items.size());
  for (size_t i = 0; i < positional; ++i) {
    const size_t at = is_by_tensor ? i : argument_of[i];
    if (at >= recorded.items.size()) continue;
    if (is_used[at] || !HasShapeOf(recorded.items[at], *tensors[i])) return GradientOrder::kListed;
    is_used[at] = true;
    aligned[i] = recorded.items[at];
  }
  for (size_t i = 0; i < recorded.items.size(); ++i) {
    if (!is_used[i] && !recorded.items[i].is_null()) return GradientOrder::kListed;
  }
  recorded.items = std::move(aligned);
  return GradientOrder::kRecorded;
}

// The table of such arguments has PyTorch's types.
void KeepLegal(PreparedCall& call) {
  const std::string type = call.type;
  if (type == "Mint") call.type = "Torch";
  if (type == "MintFunctional") call.type = "Functional";
  KeepIndicesLegal(call);
  call.type = type;
}

// Bytes of all tensors in a value: what a call costs, roughly.
double BytesIn(const Value& value) {
  double bytes = 0;
  if (const auto* record = value.As<TensorRecord>()) {
    const Result<int64_t> count = ElementCount(record->shape);
    const auto dtype = ParseDType(record->dtype_text);
    return count && dtype ? static_cast<double>(*count) * InfoOf(*dtype).size_bytes : 0;
  }
  if (const auto* list = value.As<ValueList>()) {
    for (const Value& item : *list) bytes += BytesIn(item);
  } else if (const auto* map = value.As<ValueMap>()) {
    for (const auto& member : *map) bytes += BytesIn(member.second);
  }
  return bytes;
}

const ValueList* ListAt(const Call& entry, std::string_view key) {
  const Value* value = entry.Find(key);
  return value == nullptr ? nullptr : value->As<ValueList>();
}

Skip NoList(std::string_view direction, std::string_view key) {
  return {SkipCause::kBadArgument, fmt::format("{}: no list \"{}\"", direction, key)};
}

}  // namespace

Result<std::string> FrameworkOf(const std::string& dump_json) {
  constexpr size_t kMostHeader = size_t{64} << 10;
  PL_TRY_ASSIGN(const std::string text, ReadStart(dump_json, kMostHeader));
  json::Reader in(text);
  std::string_view key, value;
  std::string framework;
  // What is wrong with the file is said by who reads all of it.
  if (in.Peek() != json::Kind::kObject || !in.EnterObject()) return framework;
  while (in.NextMember(key) && key != dump_json::kData) {
    const bool is_it = key == dump_json::kFramework && in.Peek() == json::Kind::kString;
    if (is_it && in.ReadString(value)) framework = LowerCase(value);
    if (!is_it && !in.SkipValue()) break;
  }
  if (framework == "pt") return std::string("pytorch");
  return framework == "ms" ? std::string(kMindSpore) : framework;
}

bool IsCheckedInMindSpore(std::string_view entry_name, std::string_view framework) {
  const std::vector<std::string_view> parts = SplitAt(entry_name, '.');
  if (parts.size() < 4) return false;
  const std::string_view type = parts.front();
  if (framework == kMindTorch) return type == "Torch" || type == "Functional" || type == "Tensor";
  if (type == "Mint" || type == "MintFunctional") return true;
  const std::string_view last_two_gone = SplitEntry(SplitEntry(entry_name).call).call;
  const std::string_view api = last_two_gone.substr(type.size() + 1);
  if (type == "Functional") return api == "flash_attention_score";
  return type == "Tensor" && Holds(kTensorMethods, api);
}

struct MindSporePlan::Impl {
  std::string path, framework, tensor_directory;
  File file;  // the entries of a call are read again when it is made ready
  bool uses_recorded_data = false;
  uint64_t seed = 0;
  std::vector<PlannedCall> calls;
  std::vector<std::string> warnings;
  std::unordered_map<std::string, size_t> place;  // of a call; only while it is read
  OddEntries odd;

  void Take(const dump_json::VisitedCall& visited);
  plumbline::Status ReadHeader(const RunHeader& header);
  void Keep();
  [[nodiscard]] OrSkip<Call> Entry(const std::string& name, const EntryRange& range) const;
  OrSkip<MindSporeCall> PrepareForward(const PlannedCall& planned, ValueBuilder& builder,
                                       Call& entry) const;
  OrSkip<std::vector<CallValue>> Gradients(const Call& entry, ValueBuilder& builder) const;
  void PrepareBackward(const PlannedCall& planned, ValueBuilder& builder,
                       MindSporeCall& made) const;
  OrSkip<RecordedReturn> Recorded(const PlannedCall& planned, const Call& entry,
                                  std::string_view direction) const;
};

// Both directions of a call are one call, at the place of the one that comes first in the file.
// A name that occurs again replaces the entry, at its old place.
void MindSporePlan::Impl::Take(const dump_json::VisitedCall& visited) {
  const EntryName name = SplitEntry(visited.call.name);
  const auto [found, is_new] = place.emplace(name.call, calls.size());
  if (is_new) calls.emplace_back().name = name.call;
  PlannedCall& call = calls[found->second];
  EntryRange& range = name.direction == "forward" ? call.forward : call.backward;
  odd.Add(visited, !range.empty());
  range = {visited.begin, visited.end};
  for (const auto& member : visited.call.members) call.cost += BytesIn(member.second);
}

plumbline::Status MindSporePlan::Impl::ReadHeader(const RunHeader& header) {
  if (header.task != "statistics" && header.task != "tensor") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: task \"{}\" (expected statistics or tensor). Record with one of "
                             "them, at level L1 or mix",
                             path, header.task));
  }
  uses_recorded_data = header.task == "tensor";
  framework = LowerCase(header.framework);
  if (framework == "ms") framework = kMindSpore;
  if (framework != kMindSpore && framework != kMindTorch) {
    warnings.push_back(
        fmt::format("{}: framework \"{}\" (expected mindspore or mindtorch); taken "
                    "for mindspore",
                    path, header.framework));
    framework = kMindSpore;
  }
  // A recording that was moved has its tensors beside it.
  tensor_directory = JoinPath(DirectoryOf(path), run_files::kTensorDirectory);
  if (KindOf(tensor_directory) != PathKind::kDirectory && !header.dump_data_dir.empty()) {
    tensor_directory = header.dump_data_dir;
  }
  return {};
}

// What the framework, which may stand behind the entries, lets be checked.
void MindSporePlan::Impl::Keep() {
  std::erase_if(calls, [&](const PlannedCall& call) {
    return !IsCheckedInMindSpore(call.name + ".forward", framework);
  });
  for (PlannedCall& call : calls) {
    // Upstream's runner takes exactly type, name and number.
    if (std::count(call.name.begin(), call.name.end(), '.') != 2) {
      call.skip =
          Skip{SkipCause::kNotInInventory, "the name has more parts than type, API and number"};
    } else if (call.forward.empty()) {
      call.skip = Skip{SkipCause::kMissingData, "its forward was not recorded"};
    } else if (IsRandom(call.api()) || call.api().find("dropout") != std::string_view::npos) {
      // The two frameworks draw other numbers.
      call.skip =
          Skip{SkipCause::kRandom, fmt::format("{} returns something else each time", call.api())};
    } else {
      call.skip = odd.WhyNot(call.name + ".forward");
    }
  }
  place.clear();
}

Result<MindSporePlan> MindSporePlan::Open(const std::string& dump_json, uint64_t seed) {
  auto impl = std::make_shared<Impl>();
  impl->seed = seed;
  impl->path = dump_json;
  size_t others = 0;
  std::string other_name;
  const auto take = [&](dump_json::VisitedCall&& visited) {
    // Neither framework's types alone are known yet; both are kept until the whole file is read.
    const std::string& name = visited.call.name;
    if (!IsCheckedInMindSpore(name, kMindSpore) && !IsCheckedInMindSpore(name, kMindTorch)) return;
    const std::string_view direction = SplitEntry(name).direction;
    if (direction != "forward" && direction != "backward") {
      if (others++ == 0) other_name = name;
      return;
    }
    impl->Take(visited);
  };
  const auto dump = dump_json::VisitDumpFile(dump_json, false, take);
  if (!dump) return UnreadableDump(dump.error(), dump_json);
  PL_TRY(impl->ReadHeader(dump->header));
  PL_TRY_ASSIGN(impl->file, File::OpenRead(dump_json));
  if (others > 0) {
    impl->warnings.push_back(
        fmt::format("{}: {} neither forward nor backward and left out, such as {}", dump_json,
                    CountText(others, "entry is", "entries are"), other_name));
  }
  impl->odd.Tell(dump_json, impl->warnings);
  impl->Keep();
  return MindSporePlan(std::move(impl));
}

OrSkip<Call> MindSporePlan::Impl::Entry(const std::string& name, const EntryRange& range) const {
  std::string text(range.end - range.begin, '\0');
  const Result<size_t> read = file.ReadAt(std::as_writable_bytes(std::span(text)), range.begin);
  if (read && *read == text.size()) {
    Result<Call> call = dump_json::ParseEntry(name, text);
    if (call) return *std::move(call);
  }
  return Skip{SkipCause::kMissingData,
              fmt::format("{}: changed while its calls were being run", path)};
}

size_t MindSporePlan::size() const { return impl_->calls.size(); }
const PlannedCall& MindSporePlan::call(size_t i) const { return impl_->calls[i]; }
std::vector<size_t> MindSporePlan::ByCost() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < size(); ++i) {
    if (!call(i).skip) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [this](size_t a, size_t b) { return call(a).cost > call(b).cost; });
  return order;
}

const std::string& MindSporePlan::path() const { return impl_->path; }
const std::string& MindSporePlan::framework() const { return impl_->framework; }
bool MindSporePlan::uses_recorded_data() const { return impl_->uses_recorded_data; }
const std::vector<std::string>& MindSporePlan::warnings() const { return impl_->warnings; }

OrSkip<MindSporeCall> MindSporePlan::Impl::PrepareForward(const PlannedCall& planned,
                                                          ValueBuilder& builder,
                                                          Call& entry) const {
  OrSkip<Call> read = Entry(planned.name, planned.forward);
  if (!read) return std::move(read).error();
  entry = *std::move(read);
  MindSporeCall made;
  made.call.name = planned.name;
  made.call.type = planned.type();
  made.call.api = planned.api();
  builder.SetDirection("forward");
  const ValueList* args = ListAt(entry, dump_json::kInputArgs);
  if (args == nullptr) return NoList("forward", dump_json::kInputArgs);
  for (size_t i = 0; i < args->size(); ++i) {
    auto value = builder.Build((*args)[i], fmt::format("{}.{}", dump_json::kInputArgs, i));
    if (!value) return std::move(value).error();
    made.call.args.push_back(*std::move(value));
  }
  const Value* kwargs = entry.Find(dump_json::kInputKwargs);
  const auto* members = kwargs == nullptr ? nullptr : kwargs->As<ValueMap>();
  if (members == nullptr) {
    return Skip{SkipCause::kBadArgument, "forward: no object \"input_kwargs\""};
  }
  for (const auto& [key, member] : *members) {
    auto value = builder.Build(member, fmt::format("{}.{}", dump_json::kInputKwargs, key));
    if (!value) return std::move(value).error();
    made.call.kwargs.emplace_back(key, *std::move(value));
  }
  return made;
}

OrSkip<std::vector<CallValue>> MindSporePlan::Impl::Gradients(const Call& entry,
                                                              ValueBuilder& builder) const {
  builder.SetDirection("backward");
  const ValueList* list = ListAt(entry, dump_json::kInput);
  if (list == nullptr) return NoList("backward", dump_json::kInput);
  std::vector<CallValue> gradients;
  for (size_t i = 0; i < list->size(); ++i) {
    auto value = builder.Build((*list)[i], fmt::format("{}.{}", dump_json::kInput, i));
    if (!value) return std::move(value).error();
    gradients.push_back(*std::move(value));
  }
  return gradients;
}

OrSkip<RecordedReturn> MindSporePlan::Impl::Recorded(const PlannedCall& planned, const Call& entry,
                                                     std::string_view direction) const {
  // Another memory than that of the inputs: no executor sees what was recorded.
  ValueBuilder builder(planned.name, seed, &tensor_directory);
  const ValueList* list = ListAt(entry, dump_json::kOutput);
  if (list == nullptr) return NoList(direction, dump_json::kOutput);
  auto value = builder.Build(Value(*list), std::string(dump_json::kOutput));
  if (!value) return std::move(value).error();
  RecordedReturn recorded;
  recorded.value = *std::move(value);
  recorded.memory.name = planned.name;
  recorded.memory.fills = std::move(builder.fills);
  recorded.memory.input_bytes = builder.bytes;
  return recorded;
}

void MindSporePlan::Impl::PrepareBackward(const PlannedCall& planned, ValueBuilder& builder,
                                          MindSporeCall& made) const {
  const auto skip_it = [&](Skip skip) { made.call.backward_skip = std::move(skip); };
  if (auto unread = odd.WhyNot(planned.name + ".backward")) return skip_it(*std::move(unread));
  OrSkip<Call> entry = Entry(planned.name, planned.backward);
  if (!entry) return skip_it(std::move(entry).error());
  auto gradients = Gradients(*entry, builder);
  if (!gradients) return skip_it(std::move(gradients).error());
  std::vector<TensorPlace*> tensors;
  for (CallValue& value : made.call.args) CollectTensors(value, tensors);
  for (auto& member : made.call.kwargs) CollectTensors(member.second, tensors);
  bool any = false;
  for (TensorPlace* tensor : tensors) {
    tensor->requires_grad = InfoOf(tensor->dtype).kind == DTypeKind::kFloat;
    any = any || tensor->requires_grad;
  }
  if (!any) return skip_it({SkipCause::kBackwardSkipped, "no argument is a floating tensor"});
  if (uses_recorded_data) {
    auto recorded = Recorded(planned, *entry, "backward");
    if (!recorded) return skip_it(std::move(recorded).error());
    recorded->order = AlignGradients(made, *recorded->value.As<CallSequence>());
    made.backward = *std::move(recorded);
  }
  made.call.grads = *std::move(gradients);
}

OrSkip<MindSporeCall> MindSporePlan::Prepare(size_t i) const {
  const PlannedCall& planned = impl_->calls[i];
  if (planned.skip) return *planned.skip;
  ValueBuilder builder(planned.name, impl_->seed,
                       impl_->uses_recorded_data ? &impl_->tensor_directory : nullptr);
  Call entry;
  auto made = impl_->PrepareForward(planned, builder, entry);
  if (!made) return made;
  if (impl_->uses_recorded_data) {
    auto recorded = impl_->Recorded(planned, entry, "forward");
    if (recorded) {
      made->forward = *std::move(recorded);
    } else {
      made->forward_skip = std::move(recorded).error();
    }
  }
  if (!planned.backward.empty()) impl_->PrepareBackward(planned, builder, *made);
  made->call.input_bytes = builder.bytes;
  made->call.fills = std::move(builder.fills);
  // Last, as it changes how elements are drawn that all have their places now.
  KeepLegal(made->call);
  return made;
}

// MindSporeCheck.

namespace {

// What was recorded of one direction, read into memory of its own.
struct RecordedSide {
  const RecordedReturn& recorded;
  std::vector<std::byte> memory;

  explicit RecordedSide(const RecordedReturn& what)
      : recorded(what), memory(what.memory.input_bytes) {}
  OrSkip<void> Read() { return FillInputs(recorded.memory, memory); }
  [[nodiscard]] ReturnedSide side() const { return {&recorded.value, memory}; }
};

// A call that was run, judged by one limit of the cosine and one of the error.
class RanJudge {
 public:
  RanJudge(const RanCall& ran, const MindSporeLimits& limits)
      : ran_(ran),
        made_(*static_cast<const MindSporeCall*>(ran.to_run->extra.get())),
        call_(ran.to_run->call),
        limits_(limits) {}

  // The benchmark comes first: a call that it cannot run was rebuilt wrongly, whatever was tested.
  [[nodiscard]] DirectionOutcome Forward() const {
    if (!ran_.bench->forward) return DirectionOutcome::Skipped(ran_.bench->forward.error());
    const ReturnedSide bench{&*ran_.bench->forward, ran_.bench_memory};
    if (ran_.device != nullptr) {
      if (!ran_.device->forward)
        return DirectionOutcome::Skipped(OnDevice(ran_.device->forward.error()));
      return JudgeForward(call_.name, bench, {&*ran_.device->forward, ran_.device_memory}, limits_);
    }
    if (made_.forward_skip) return DirectionOutcome::Skipped(*made_.forward_skip);
    RecordedSide tested(*made_.forward);
    if (auto read = tested.Read(); !read) return DirectionOutcome::Skipped(read.error());
    return JudgeForward(call_.name, bench, tested.side(), limits_);
  }

  // Judged apart from the forward: either may fail alone.
  [[nodiscard]] DirectionOutcome Backward() const {
    if (call_.backward_skip) return DirectionOutcome::Skipped(*call_.backward_skip);
    if (!call_.grads) return {};
    for (const SideResult* side : {ran_.bench, ran_.device}) {
      if (side == nullptr) continue;
      // An executor that ended in the forward has said nothing of the backward.
      if (side->backward && *side->backward) continue;
      Skip skip = side->backward ? side->backward->error() : ForwardSkip(*side);
      return DirectionOutcome::Skipped(side == ran_.device ? OnDevice(std::move(skip))
                                                           : std::move(skip));
    }
    const ReturnedSide bench{&**ran_.bench->backward, ran_.bench_memory};
    if (ran_.device != nullptr) {
      return JudgeBackward(call_.name, bench, {&**ran_.device->backward, ran_.device_memory},
                           GradientOrder::kAligned, limits_);
    }
    RecordedSide tested(*made_.backward);
    if (auto read = tested.Read(); !read) return DirectionOutcome::Skipped(read.error());
    return JudgeBackward(call_.name, bench, tested.side(), made_.backward->order, limits_);
  }

 private:
  static Skip ForwardSkip(const SideResult& side) {
    if (!side.forward) return side.forward.error();
    return {SkipCause::kBackwardSkipped, "no gradient was computed"};
  }

  const RanCall& ran_;
  const MindSporeCall& made_;
  const PreparedCall& call_;
  const MindSporeLimits& limits_;
};

}  // namespace

OrSkip<CallToRun> MindSporeCheck::Prepare(size_t index) const {
  auto made = plan_.Prepare(index);
  if (!made) return std::move(made).error();
  CallToRun to_run;
  to_run.call = std::move(made->call);
  to_run.runs_device = !plan_.uses_recorded_data();
  // What is left of it beside the call: the recorded outputs.
  to_run.extra = std::make_shared<const MindSporeCall>(*std::move(made));
  return to_run;
}

CallOutcome MindSporeCheck::Skipped(size_t index, Skip skip) const {
  const PlannedCall& planned = plan_.call(index);
  CallOutcome outcome;
  outcome.name = planned.name;
  if (!planned.forward.empty()) outcome.forward = DirectionOutcome::Skipped(skip);
  if (!planned.backward.empty()) outcome.backward = DirectionOutcome::Skipped(std::move(skip));
  return outcome;
}

CallOutcome MindSporeCheck::Judge(const RanCall& ran) const {
  const RanJudge judge(ran, limits_);
  CallOutcome outcome;
  outcome.name = ran.to_run->call.name;
  outcome.forward = judge.Forward();
  outcome.backward = judge.Backward();
  return outcome;
}

}  // namespace plumbline::precheck
