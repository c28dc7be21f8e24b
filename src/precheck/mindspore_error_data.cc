#include "precheck/mindspore_error_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/remove_directory.h"
#include "formats/json/dump_json.h"
#include "formats/pytorch/tensor_convert.h"
#include "kernels/tensor_scan.h"
#include "precheck/input_data.h"
#include "precheck/mindspore_calls.h"
#include "precheck/mindspore_judge.h"
#include "precheck/parts/part_data.h"
#include "record/call_name.h"
#include "record/tensor_stats.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kTensors = "error_data";
constexpr std::string_view kDumpJson = "dump.json";
constexpr std::string_view kStackJson = "stack.json";

// {"type": ..., "value": ...}, as recorders write what is no tensor.
Value Typed(std::string_view type, Value value) {
  ValueMap object;
  object.emplace_back("type", Value(std::string(type)));
  object.emplace_back("value", std::move(value));
  return Value(std::move(object));
}

// Records one entry: its values as dump.json has them, its tensors as files.
class EntryRecorder {
 public:
  EntryRecorder(std::string directory, std::string name, CallKind kind)
      : directory_(std::move(directory)) {
    entry_.name = std::move(name);
    entry_.kind = kind;
  }

  // A member of the entry; tensors of `values` lie in `memory`. Their files are named by `part`.
  plumbline::Status AddList(std::string_view member, std::string_view part,
                            std::span<const CallValue> values, std::span<const std::byte> memory) {
    part_ = part;
    memory_ = memory;
    ValueList list;
    for (size_t i = 0; i < values.size(); ++i) {
      PL_TRY_ASSIGN(Value value, Record(values[i], std::to_string(i)));
      list.push_back(std::move(value));
    }
    entry_.members.emplace_back(member, Value(std::move(list)));
    return {};
  }
  plumbline::Status AddMap(std::string_view member, std::string_view part, const CallMap& values,
                           std::span<const std::byte> memory) {
    part_ = part;
    memory_ = memory;
    ValueMap map;
    for (const auto& [key, item] : values) {
      PL_TRY_ASSIGN(Value value, Record(item, key));
      map.emplace_back(key, std::move(value));
    }
    entry_.members.emplace_back(member, Value(std::move(map)));
    return {};
  }

  Call Take() { return std::move(entry_); }

 private:
  Result<Value> Record(const CallValue& value, const std::string& path);
  Result<Value> RecordTensor(const TensorPlace& place, const std::string& path);
  Result<Value> RecordItems(const CallSequence& sequence, const std::string& path);

  std::string directory_;
  std::string_view part_;
  std::span<const std::byte> memory_;
  Call entry_;
};

// Executors may go on writing while they are read: what they say is checked where it is used.
Result<Value> EntryRecorder::RecordTensor(const TensorPlace& place, const std::string& path) {
  const Result<int64_t> count = ElementCount(place.shape);
  const size_t size = InfoOf(place.dtype).size_bytes;
  const bool fits = count && place.offset <= memory_.size() &&
                    static_cast<size_t>(*count) <= (memory_.size() - place.offset) / size;
  if (!fits) return Error(ErrorCode::kCorrupt, "a tensor lies outside the memory of its call");
  const std::vector<int64_t> strides = ContiguousStrides(place.shape);
  const TensorView view{place.dtype, memory_.data() + place.offset, place.shape, strides};
  TensorRecord record;
  record.type = "mindspore.Tensor";
  record.dtype_text = MindSporeDTypeText(place.dtype);
  record.shape = place.shape;
  const kernels::TensorScan scan = kernels::ScanTensor(view, {});
  const TensorStats stats = ComputeStats(place.dtype, scan.moments, place.shape.empty());
  record.max = stats.max;
  record.min = stats.min;
  record.mean = stats.mean;
  record.norm = stats.norm;
  record.data_name = TensorName(entry_.name, part_, path) + ".npy";
  PL_TRY_ASSIGN(const ConvertedTensor written,
                WriteNpy(view, JoinPath(directory_, *record.data_name)));
  (void)written;
  return Value(std::move(record));
}

Result<Value> EntryRecorder::RecordItems(const CallSequence& sequence, const std::string& path) {
  ValueList list;
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    const CallValue& item = sequence.items[i];
    if (sequence.kind == Sequence::kSlice) {
      const auto* number = item.As<int64_t>();
      list.push_back(number == nullptr ? Value() : Value(*number));
      continue;
    }
    PL_TRY_ASSIGN(Value value, Record(item, fmt::format("{}.{}", path, i)));
    list.push_back(std::move(value));
  }
  Value value(std::move(list));
  return sequence.kind == Sequence::kSlice ? Typed("slice", std::move(value)) : std::move(value);
}

// The forms that MindSporePlan reads again.
Result<Value> EntryRecorder::Record(const CallValue& value, const std::string& path) {
  if (const auto* tensor = value.As<TensorPlace>()) return RecordTensor(*tensor, path);
  if (const auto* sequence = value.As<CallSequence>()) return RecordItems(*sequence, path);
  if (const auto* map = value.As<CallMap>()) {
    ValueMap members;
    for (const auto& [key, item] : *map) {
      PL_TRY_ASSIGN(Value member, Record(item, fmt::format("{}.{}", path, key)));
      members.emplace_back(key, std::move(member));
    }
    return Value(std::move(members));
  }
  if (const auto* truth = value.As<bool>()) return Typed("bool", Value(*truth));
  if (const auto* integer = value.As<int64_t>()) return Typed("int", Value(*integer));
  if (const auto* real = value.As<double>()) return Typed("float", Value(*real));
  if (const auto* text = value.As<std::string>()) return Typed("str", Value(*text));
  const auto* special = value.As<SpecialValue>();
  if (special == nullptr) return Value();
  const auto dtype = special->kind == Special::kDType ? ParseDType(special->text) : std::nullopt;
  if (!dtype)
    return Typed(special->kind == Special::kEllipsis ? "ellipsis" : special->type,
                 Value(special->text));
  return Typed("mindspore.dtype", Value(std::string(MindSporeDTypeText(*dtype))));
}

// What was tested of one direction: what the device returned, or what was recorded.
struct TestedOutputs {
  std::vector<CallValue> values;  // the items of a list or tuple, or the one value
  std::span<const std::byte> where;
  std::vector<std::byte> memory;  // of recorded tensors

  void Take(const CallValue& value) {
    const auto* sequence = value.As<CallSequence>();
    values = sequence != nullptr ? sequence->items : std::vector<CallValue>{value};
  }
};

TestedOutputs TestedOf(const RanCall& ran, CallKind kind) {
  TestedOutputs tested;
  const bool is_forward = kind == CallKind::kForward;
  if (ran.device != nullptr) {
    const auto& backward = ran.device->backward;
    const SideValue* side = is_forward ? &ran.device->forward : backward ? &*backward : nullptr;
    if (side != nullptr && *side) tested.Take(**side);
    tested.where = ran.device_memory;
    return tested;
  }
  const auto& made = *static_cast<const MindSporeCall*>(ran.to_run->extra.get());
  const auto& recorded = is_forward ? made.forward : made.backward;
  if (!recorded) return tested;
  tested.memory.resize(recorded->memory.input_bytes);
  if (FillInputs(recorded->memory, tested.memory)) tested.Take(recorded->value);
  tested.where = tested.memory;
  return tested;
}

// A recording of someone else, which is not to be replaced.
bool IsForeign(const std::string& path, const std::string& tensors) {
  if (KindOf(path) == PathKind::kMissing) return false;
  const auto file = dump_json::ReadDump(path, true, [](Call&, const RunHeader&) { return false; });
  return !file || file->header.dump_data_dir != tensors;
}

plumbline::Status WriteText(const std::string& path, std::string_view text) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(file.Write(text));
  return file.Commit(false);
}

}  // namespace

MindSporeErrorData::MindSporeErrorData(std::string output_directory, std::string framework)
    : output_directory_(std::move(output_directory)),
      directory_(JoinPath(output_directory_, kTensors)),
      framework_(std::move(framework)) {}

plumbline::Status MindSporeErrorData::Add(const RanCall& ran, const CallOutcome& outcome) {
  // A skipped call has nothing that could be looked at.
  const bool failed = outcome.forward.status == CheckStatus::kError ||
                      outcome.backward.status == CheckStatus::kError;
  if (!failed) return {};
  const PreparedCall& call = ran.to_run->call;
  if (call.name.find('/') != std::string::npos) {
    return Error(ErrorCode::kCorrupt, call.name + ": is no name of files");
  }
  PL_TRY(MakeDirectories(directory_));
  std::vector<Call> entries;
  const auto add_output = [&](EntryRecorder& entry, CallKind kind) -> plumbline::Status {
    const TestedOutputs tested = TestedOf(ran, kind);
    PL_TRY(entry.AddList(dump_json::kOutput, "output", tested.values, tested.where));
    entries.push_back(entry.Take());
    return {};
  };
  // Both directions of a call that fails in one: the other one says whether it is the same error.
  EntryRecorder forward(directory_, call.name + ".forward", CallKind::kForward);
  PL_TRY(forward.AddList(dump_json::kInputArgs, "input", call.args, ran.inputs));
  PL_TRY(forward.AddMap(dump_json::kInputKwargs, "kwargs", call.kwargs, ran.inputs));
  PL_TRY(add_output(forward, CallKind::kForward));
  if (call.grads) {
    EntryRecorder backward(directory_, call.name + ".backward", CallKind::kBackward);
    PL_TRY(backward.AddList(dump_json::kInput, "input", *call.grads, ran.inputs));
    PL_TRY(add_output(backward, CallKind::kBackward));
  }
  const std::scoped_lock lock(mutex_);
  std::move(entries.begin(), entries.end(), std::back_inserter(calls_));
  return {};
}

plumbline::Status MindSporeErrorData::Finish() {
  if (calls_.empty()) return {};
  PL_TRY_ASSIGN(const std::string tensors, RealPath(directory_));
  const std::string beside = JoinPath(output_directory_, kDumpJson);
  const std::string path = IsForeign(beside, tensors) ? JoinPath(directory_, kDumpJson) : beside;
  PL_TRY(AddEarlier(path));
  // Calls come in as they end, in another order each time.
  std::sort(calls_.begin(), calls_.end(),
            [](const Call& a, const Call& b) { return a.name < b.name; });
  std::string text;
  dump_json::DumpWriter writer(text);
  RunHeader header;
  header.task = "tensor";
  header.level = "L1";
  header.framework = framework_;
  header.dump_data_dir = tensors;
  writer.Begin(header);
  dump_json::StackTable stacks;
  for (const Call& call : calls_) {
    writer.Add(call);
    stacks.emplace_back(call.name, std::vector<std::string>());
  }
  writer.End();
  PL_TRY(WriteText(path, text));
  return WriteText(JoinPath(DirectoryOf(path), kStackJson), dump_json::FormatStack(stacks));
}

plumbline::Status MindSporeErrorData::TakePart(const std::string& part) {
  PL_TRY_ASSIGN(dump_json::DumpFile kept, dump_json::ReadDump(JoinPath(part, kDumpJson), false));
  std::move(kept.calls.begin(), kept.calls.end(), std::back_inserter(calls_));
  PL_TRY(TakePartFiles(JoinPath(part, kTensors), directory_));
  return RemovePart(part);
}

plumbline::Status MindSporeErrorData::RemovePart(const std::string& part) {
  PL_TRY(RemoveDirectory(JoinPath(part, kTensors)));
  return RemoveDirectory(part);
}

// What a run before this one, of which this one is the rest, kept.
plumbline::Status MindSporeErrorData::AddEarlier(const std::string& path) {
  if (KindOf(path) != PathKind::kFile) return {};
  PL_TRY_ASSIGN(dump_json::DumpFile earlier, dump_json::ReadDump(path, true));
  const size_t count = calls_.size();
  for (Call& call : earlier.calls) {
    const auto end = calls_.begin() + static_cast<std::ptrdiff_t>(count);
    const bool is_again = std::any_of(calls_.begin(), end,
                                      [&](const Call& other) { return other.name == call.name; });
    if (!is_again) calls_.push_back(std::move(call));
  }
  return {};
}

}  // namespace plumbline::precheck
