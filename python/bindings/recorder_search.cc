// The searching half of the recorder: tasks that look at every tensor and record only what they
// find. Tensors are looked at when they are met and kept; records and files of them are made when
// the call has ended and turned out to be a hit.

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "callback.h"
#include "framework_team.h"
#include "kernels/finite_scan.h"
#include "recorder.h"

namespace plumbline::python {
namespace {

// Tensors from this size on are read without the interpreter lock.
constexpr size_t kReleaseLockBytes = size_t{1} << 20;
// Reading less again costs no more than finding out that nothing has changed.
constexpr size_t kWorthCaching = size_t{32} << 10;

bool HasNonFinite(const TensorView& view) {
  const kernels::Team team = FrameworkTeam();
  if (view.size_bytes() < kReleaseLockBytes) return kernels::HasNonFinite(view, &team);
  bool found = false;
  Py_BEGIN_ALLOW_THREADS;
  found = kernels::HasNonFinite(view, &team);
  Py_END_ALLOW_THREADS;
  return found;
}

// result = object.method(), releasing `object`; null (error cleared) if it is null or that raises.
PyObject* CallAndRelease(PyObject* object, const char* method) {
  PyObject* result = object == nullptr ? nullptr : PyObject_CallMethod(object, method, nullptr);
  if (result == nullptr) DropError();
  Py_XDECREF(object);
  return result;
}

bool HasElements(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), 0) == shape.end();
}

// Whether NaN and Inf came into being in this call.
std::string_view OriginOf(const KeptTensors& kept) {
  if (kept.input_hit) return "propagated";
  return kept.has_input && !kept.is_unknown ? "origin" : "unknown";
}

}  // namespace

void Recorder::PackBare(const Labels& labels, EntryPacker& out) const {
  BeginTensor(labels.type, labels.dtype_text, labels.shape == nullptr ? Shape() : *labels.shape,
              out);
  if (types_.texts.tells_grad) {
    out.Key("requires_grad");
    out.Bool(labels.requires_grad == true);
  }
  out.EndMap();
}

Recorder::Sight Recorder::LookAtMemory(PyObject* tensor, const HostTensor& host, bool may_cache) {
  const DTypeKind kind = InfoOf(host.dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex) return {};
  if (!host.on_host) return LookOnDevice(tensor);
  const TensorView view = host.view();
  if (!may_cache || view.size_bytes() < kWorthCaching) return {HasNonFinite(view)};
  if (const TensorFacts* known = cache_.Find(tensor, host)) return {known->non_finite};
  TensorFacts facts;
  facts.non_finite = HasNonFinite(view);
  cache_.Store(tensor, host, facts);
  return {facts.non_finite};
}

Recorder::Sight Recorder::LookOnDevice(PyObject* tensor) {
  // One small result comes to the host; dtypes without isfinite() come as a whole.
  PyObject* all = CallAndRelease(CallAndRelease(Py_NewRef(tensor), "isfinite"), "all");
  PyObject* finite = CallAndRelease(all, "item");
  if (finite != nullptr) {
    const bool hit = finite == Py_False;
    Py_DECREF(finite);
    return {hit};
  }
  PyObject* copy = PyObject_CallOneArg(hooks_.to_host, tensor);
  if (copy == nullptr) DropError();
  HostTensor host;
  Sight sight{.unknown = true};
  if (copy != nullptr && reader_.Read(copy, &host) && host.on_host) {
    sight = {HasNonFinite(host.view())};
  }
  Py_XDECREF(copy);
  if (sight.unknown) {
    observer_->CountLoss("tensors_unreadable",
                         ThisThread().entry_name + ": a tensor whose memory cannot be read");
  }
  return sight;
}

Recorder::Sight Recorder::LookAtDescribed(PyObject* tensor, EntryPacker* bare) {
  Description described;
  if (!Describe(tensor, /*with_bytes=*/false, &described)) {
    if (bare != nullptr) bare->Null();
    return {.unknown = true};
  }
  if (bare != nullptr) PackBare(described.labels, *bare);
  std::string problem = described.problem;
  // Elements without values (meta tensors, freed storage): nobody can say that they are finite.
  Sight sight{.unknown = described.source == nullptr && HasElements(described.shape)};
  HostTensor host;
  if (described.source != nullptr && reader_.Read(described.source, &host)) {
    sight = LookAtMemory(described.source, host, /*may_cache=*/false);
  } else if (described.source != nullptr) {
    problem = "a tensor whose memory cannot be read";
  }
  if (problem.empty()) return sight;
  observer_->CountLoss("tensors_unreadable", ThisThread().entry_name + ": " + problem);
  return {.hit = sight.hit, .unknown = true};
}

Recorder::Sight Recorder::Look(PyObject* tensor, EntryPacker* bare) {
  HostTensor host;
  if (!IsPlainClass(Py_TYPE(tensor)) || !reader_.Read(tensor, &host)) {
    return LookAtDescribed(tensor, bare);
  }
  if (bare != nullptr) {
    const Shape shape(host.sizes.begin(), host.sizes.end());
    PackBare({.type = types_.texts.tensor_type,
              .dtype_text = types_.texts.DTypeText(host.dtype),
              .requires_grad = RequiresGrad(tensor, hooks_.names),
              .shape = &shape},
             *bare);
  }
  return LookAtMemory(tensor, host, hooks_.names.counts_every_write());
}

void Recorder::LookAt(PyObject* tensor, std::string_view path, EntryPacker& out) {
  ThreadState& thread = ThisThread();
  KeptTensors& seen = *thread.kept;
  const NoOverride plain(types_, hooks_, tensor);
  KeptTensor kept;
  kept.begin = out.size();
  Sight sight;
  if (search_ == Search::kDifference) {
    thread.kept = nullptr;
    PackTensor(tensor, path, out);
    thread.kept = &seen;
  } else {
    sight = Look(tensor, search_ == Search::kNanFlag ? &out : nullptr);
  }
  kept.end = out.size();
  if (!seen.in_output && !IsRead(seen.writes, path)) sight = {};
  (seen.in_output ? seen.output_hit : seen.input_hit) |= sight.hit;
  seen.has_input |= !seen.in_output;
  seen.is_unknown |= sight.unknown;
  if (!thread.keeps_tensors) return;
  kept.path = path;
  kept.requires_grad = RequiresGrad(tensor, hooks_.names);
  if (!seen.in_output) {
    kept.version = VersionOf(tensor);
    if (MayWrite(seen.writes, path)) kept.copy = CopyBeforeCall(tensor, kept.version);
  }
  kept.tensor = Py_NewRef(tensor);
  seen.tensors.push_back(std::move(kept));
}

PyObject* Recorder::WhatIsLeft(PyObject* result, PyObject* const* args, Py_ssize_t count,
                               const KeptTensors& kept) const {
  const bool flags_values = search_ == Search::kNonFinite || search_ == Search::kNanFlag;
  if (!flags_values || result != Py_None || count == 0) return result;
  const bool writes_first = kept.writes == Writes::kFirst || kept.writes == Writes::kOverwritten;
  return writes_first ? args[0] : result;
}

PyObject* Recorder::CopyBeforeCall(PyObject* tensor, std::optional<int64_t> version) {
  PyObject* copy = CallAndRelease(CallAndRelease(Py_NewRef(tensor), "detach"), "clone");
  if (copy == nullptr) return nullptr;
  for (ModuleFrame& frame : ThisThread().modules) {
    frame.inputs.kept.Share(tensor, version, copy);
  }
  return copy;
}

void Recorder::PackKept(const KeptTensor& kept, EntryPacker& out) {
  PyObject* tensor = kept.copy != nullptr ? kept.copy : kept.tensor;
  const NoOverride plain(types_, hooks_, tensor);
  const bool is_plain = IsPlainClass(Py_TYPE(tensor));
  const bool is_changed =
      kept.copy == nullptr && kept.version.has_value() && VersionOf(kept.tensor) != kept.version;
  HostTensor host;
  if (is_changed && is_plain && reader_.Read(tensor, &host)) {
    // Values of after the call under the name of an input would be worse than none.
    observer_->CountLoss("inputs_overwritten",
                         fmt::format("{}: {} was written to during the call; its values before are "
                                     "not known",
                                     ThisThread().entry_name, kept.path));
    const Shape shape(host.sizes.begin(), host.sizes.end());
    return PackWithoutValues({.type = types_.texts.tensor_type,
                              .dtype_text = types_.texts.DTypeText(host.dtype),
                              .requires_grad = kept.requires_grad,
                              .shape = &shape},
                             out);
  }
  const Labels labels{.type = types_.texts.tensor_type, .requires_grad = kept.requires_grad};
  if (is_plain && PackMemory(tensor, labels, /*may_cache=*/false, kept.path, out)) return;
  PackDescribed(tensor, kept.path, out);
}

void Recorder::StoreKept(std::string_view name, EntryPacker& out, const KeptTensors& kept) {
  ThreadState& thread = ThisThread();
  NameEntry(thread, name);
  thread.saves_tensors = true;
  const std::vector<std::byte> first(out.bytes().begin(), out.bytes().end());
  const std::span<const std::byte> bytes(first);
  out.Clear();
  size_t at = 0;
  for (const KeptTensor& tensor : kept.tensors) {
    out.Raw(bytes.subspan(at, tensor.begin - at));
    PackKept(tensor, out);
    at = tensor.end;
  }
  out.Raw(bytes.subspan(at));
}

void Recorder::EndEntry(std::string_view name, EntryPacker& out, KeptTensors& kept,
                        bool is_listed) {
  if (search_ == Search::kNothing || out.size() == kept.head) {
    AppendEntry(out.Finish());
  } else if (search_ == Search::kNanFlag) {
    if (kept.is_hit() && !kept.tensors.empty()) StoreKept(name, out, kept);
    out.Key("is_nan");
    if (kept.is_unknown && !kept.is_hit()) {
      out.Null();
    } else {
      out.Int(kept.is_hit() ? 1 : 0);
    }
    AppendEntry(out.Finish());
  } else if (search_ == Search::kDifference) {
    EndCompared(name, out, kept);
  } else {
    EndSearched(name, out, kept, is_listed);
  }
  kept.Clear();
}

void Recorder::EndCompared(std::string_view name, EntryPacker& out, const KeptTensors& kept) {
  const size_t size = out.size();
  const Result<UnpackedEntry> entry = UnpackEntry(out.Finish());
  out.Truncate(size);
  const bool differs =
      entry.has_value() && reference_.Judge(entry->call) == capture::Agreement::kDiffers;
  const bool is_hit = differs && observer_->TakeHit();
  if (is_hit) StoreKept(name, out, kept);
  AppendEntry(out.Finish());
  if (!is_hit) return;
  LogWarning(fmt::format("{}: the same inputs as in {} gave another output; its tensors are stored",
                         name, observer_->config().bench_path));
  SecureHit();
}

void Recorder::EndSearched(std::string_view name, EntryPacker& out, KeptTensors& kept,
                           bool is_listed) {
  if (!kept.is_hit()) {
    out.Truncate(kept.head);
    if (is_listed) AppendEntry(out.Finish());
    return;
  }
  const std::string_view origin = OriginOf(kept);
  const bool counts = !observer_->config().counts_origins_only || origin != "propagated";
  if (observer_->is_done() || (counts && !observer_->TakeHit())) return;
  StoreKept(name, out, kept);
  // Members of this kind are parameters, and one more would be taken for one.
  if (KindOfCall(name) != CallKind::kParametersGrad) {
    out.Key("overflow_origin");
    out.String(origin);
  }
  AppendEntry(out.Finish());
  LogWarning(
      fmt::format("plumbline is collecting data on {}. Overflow detected. ({})", name, origin));
  SecureHit();
}

void Recorder::SecureHit() {
  Status secured;
  Py_BEGIN_ALLOW_THREADS;
  secured = observer_->SecureHit();
  Py_END_ALLOW_THREADS;
  if (!secured) LogError(secured.error().message());
}

}  // namespace plumbline::python
