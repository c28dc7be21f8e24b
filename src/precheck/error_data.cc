#include "precheck/error_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/json.h"
#include "formats/pytorch/torch_pt.h"
#include "tensor/element_value.h"

namespace plumbline::precheck {
namespace {

// Calls `visit` for every tensor among the leaves of a value, with its number.
using VisitTensor = std::function<plumbline::Status(const TensorPlace& place, size_t number)>;
plumbline::Status VisitLeaves(const CallValue& value, size_t& count, const VisitTensor& visit) {
  const auto* sequence = value.As<CallSequence>();
  if (sequence != nullptr && sequence->kind != Sequence::kSlice) {
    for (const CallValue& item : sequence->items) PL_TRY(VisitLeaves(item, count, visit));
    return {};
  }
  if (const auto* map = value.As<CallMap>()) {
    for (const auto& [key, item] : *map) PL_TRY(VisitLeaves(item, count, visit));
    return {};
  }
  const size_t number = count++;
  const auto* place = value.As<TensorPlace>();
  return place == nullptr ? plumbline::Status() : visit(*place, number);
}

plumbline::Status WritePt(const std::string& path, DType dtype, const Shape& shape,
                          std::span<const std::byte> bytes) {
  const torch_pt::Frame frame = torch_pt::MakeFrame(dtype, shape, bytes.size(), Crc32(bytes));
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(file.Write(frame.head));
  PL_TRY(file.Write(bytes));
  PL_TRY(file.Write(frame.tail));
  return file.Commit(false);
}

// The elements in the type that the benchmark side has them in.
std::vector<std::byte> Raised(const TensorPlace& place, std::span<const std::byte> bytes) {
  if (place.dtype != DType::kFloat32) return StoredAsFloats(place.dtype, bytes);
  std::vector<std::byte> raised(bytes.size() * 2);
  for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
    const double value = LoadAs<float>(bytes.data() + i * sizeof(float));
    std::memcpy(raised.data() + i * sizeof(double), &value, sizeof(double));
  }
  return raised;
}

// Files of one call.
class CallFiles {
 public:
  CallFiles(const std::string& directory, const std::string& call)
      : stem_(JoinPath(directory, call)) {}

  // Leaves of `values`, counted together, as files `<call>.<group>.<number>.pt`.
  plumbline::Status Write(std::string_view group, std::span<const CallValue> values,
                          std::span<const std::byte> memory, bool is_raised = false) const {
    size_t count = 0;
    for (const CallValue& value : values) {
      PL_TRY(VisitLeaves(value, count, [&](const TensorPlace& place, size_t number) {
        return WriteOne(fmt::format("{}.{}.{}.pt", stem_, group, number), place, memory, is_raised);
      }));
    }
    return {};
  }

  plumbline::Status WriteText(std::string_view text) const {
    return WriteFileAtomically(stem_ + ".json", text, false);
  }

 private:
  static plumbline::Status WriteOne(const std::string& path, const TensorPlace& place,
                                    std::span<const std::byte> memory, bool is_raised) {
    PL_TRY_ASSIGN(const size_t size, BytesOf(place));
    const auto bytes = memory.subspan(std::min(place.offset, memory.size()));
    if (bytes.size() < size) {
      return Error(ErrorCode::kInternal, path + ": the tensor is not in memory any more");
    }
    const bool is_raisable = place.raised == DType::kFloat32 || place.dtype == DType::kFloat32;
    if (!is_raised || !place.raised || !is_raisable) {
      return WritePt(path, place.dtype, place.shape, bytes.first(size));
    }
    return WritePt(path, *place.raised, place.shape, Raised(place, bytes.first(size)));
  }

  std::string stem_;
};

void AppendValues(std::string_view name, const std::vector<CallValue>& values, std::string& out) {
  out += fmt::format(",\"{}\":[", name);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    AppendJson(values[i], out);
  }
  out += ']';
}

void AppendDirection(std::string_view name, const DirectionOutcome& direction, std::string& out) {
  const std::string_view word =
      direction.status == CheckStatus::kNone ? "none" : StatusWord(direction.status);
  out += fmt::format(",\"{}\":{{\"status\":\"{}\",\"outputs\":[", name, word);
  for (size_t i = 0; i < direction.rows.size(); ++i) {
    const OutputRow& row = direction.rows[i];
    out += i > 0 ? ",[" : "[";
    json::AppendString(row.name, out);
    out += fmt::format(",\"{}\",", StatusWord(row.status));
    json::AppendString(row.message, out);
    out += ']';
  }
  out += "]}";
}

// Tensors in it have no offsets that mean anything outside of this run: leaves are numbered as the
// files are.
std::string DescriptionOf(uint64_t seed, const PreparedCall& call, const CallOutcome& outcome) {
  std::string text = "{\"name\":";
  json::AppendString(call.name, text);
  text += ",\"type\":";
  json::AppendString(call.type, text);
  text += ",\"api\":";
  json::AppendString(call.api, text);
  text += fmt::format(",\"seed\":{}", seed);
  AppendValues("args", call.args, text);
  text += ",\"kwargs\":";
  AppendJson(call.kwargs, text);
  if (call.grads) AppendValues("grads", *call.grads, text);
  if (call.autocast) text += fmt::format(",\"autocast\":\"{}\"", InfoOf(*call.autocast).name);
  AppendDirection("forward", outcome.forward, text);
  AppendDirection("backward", outcome.backward, text);
  return text + "}\n";
}

// What both sides made of a direction; null: nothing.
struct Returned {
  std::string_view name;
  const SideValue* bench = nullptr;
  const SideValue* device = nullptr;
};
Returned ForwardOf(const RanCall& ran) {
  return {"forward", &ran.bench->forward, ran.device == nullptr ? nullptr : &ran.device->forward};
}
Returned BackwardOf(const RanCall& ran) {
  const auto of = [](const SideResult* side) {
    return side != nullptr && side->backward ? &*side->backward : nullptr;
  };
  return {"backward", of(ran.bench), of(ran.device)};
}

plumbline::Status WriteReturned(const CallFiles& files, const Returned& returned,
                                const RanCall& ran) {
  if (returned.bench != nullptr && *returned.bench) {
    PL_TRY(files.Write(fmt::format("{}.output.bench", returned.name), {&**returned.bench, 1},
                       ran.bench_memory));
  }
  if (returned.device != nullptr && *returned.device) {
    PL_TRY(files.Write(fmt::format("{}.output.device", returned.name), {&**returned.device, 1},
                       ran.device_memory));
  }
  return {};
}

// Arguments as a side left them that its forward changed in place.
plumbline::Status WriteChanged(const CallFiles& files, std::string_view side,
                               const SideResult& result, std::span<const std::byte> memory) {
  if (!result.arguments) return {};
  for (const auto& [place, value] : result.arguments->changed) {
    // A keyword comes from a dump; as a file name it must stay in the directory.
    if (place.find('/') != std::string::npos) continue;
    PL_TRY(files.Write(fmt::format("forward.changed.{}.{}", side, place), {&value, 1}, memory));
  }
  return {};
}

}  // namespace

// A skipped backward alone says nothing about numbers.
bool IsWorthKeeping(const CallOutcome& outcome) {
  return outcome.forward.status != CheckStatus::kPass || IsWrong(outcome.backward.status);
}

plumbline::Status SaveErrorData(const std::string& directory, uint64_t seed, const RanCall& ran,
                                const CallOutcome& outcome) {
  const PreparedCall& call = ran.to_run->call;
  if (call.name.find('/') != std::string::npos) {
    return Error(ErrorCode::kCorrupt, call.name + ": is no name of files");
  }
  PL_TRY(MakeDirectories(directory));
  const CallFiles files(directory, call.name);
  PL_TRY(files.Write("forward.input", call.args, ran.inputs));
  for (const auto& [key, value] : call.kwargs) {
    // A keyword comes from a dump; as a file name it must stay in the directory.
    if (key.find('/') != std::string::npos) continue;
    PL_TRY(files.Write("forward.input." + key, {&value, 1}, ran.inputs));
  }
  PL_TRY(WriteReturned(files, ForwardOf(ran), ran));
  PL_TRY(WriteChanged(files, "bench", *ran.bench, ran.bench_memory));
  if (ran.device != nullptr) {
    PL_TRY(WriteChanged(files, "device", *ran.device, ran.device_memory));
  }
  if (call.grads) PL_TRY(files.Write("backward.input", *call.grads, ran.inputs, true));
  PL_TRY(WriteReturned(files, BackwardOf(ran), ran));
  return files.WriteText(DescriptionOf(seed, call, outcome));
}

}  // namespace plumbline::precheck
