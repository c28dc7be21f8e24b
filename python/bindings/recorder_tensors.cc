// The tensor half of the recorder: from a Python tensor to its memory, and to what is known of one
// whose memory is not its values.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/process/log.h"
#include "callback.h"
#include "python_program.h"
#include "recorder.h"

namespace plumbline::python {
namespace {

using capture::Cut;
using capture::KeptTensor;
using capture::Search;
using capture::Sight;
using capture::TensorFacts;
using capture::TensorLabels;

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

// A size that is not known yet (symbolic) is 0: readers take no negative one.
Shape ShapeOf(PyObject* sizes) {
  Shape shape;
  for (Py_ssize_t i = 0; PyTuple_Check(sizes) && i < PyTuple_GET_SIZE(sizes); ++i) {
    const long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
    if (PyErr_Occurred() != nullptr) DropError();
    shape.push_back(std::max(size, 0LL));
  }
  return shape;
}

// From a dict request -> number of tokens. What is wrong with it, or nothing.
std::string ReadShares(PyObject* schedule, std::vector<capture::BatchShare>* shares) {
  if (!PyDict_Check(schedule)) {
    return fmt::format("as {} (expected a dict of request -> number of its tokens)",
                       TypeNameOf(schedule));
  }
  PyObject* request = nullptr;
  PyObject* tokens = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(schedule, &at, &request, &tokens) != 0;) {
    if (!PyUnicode_Check(request)) {
      return fmt::format("with a key of type {} (expected str)", TypeNameOf(request));
    }
    const bool is_number = PyLong_Check(tokens) && !PyBool_Check(tokens);
    const long long count = is_number ? PyLong_AsLongLong(tokens) : 0;
    DropError();
    if (count < 1 || count > capture::kMostTokens) {
      return fmt::format("with {} for request {} (expected its number of tokens, an int of at "
                         "least 1)",
                         is_number ? StrOf(tokens) : TypeNameOf(tokens), TextCopyOf(request));
    }
    shares->push_back({TextCopyOf(request), count});
  }
  return {};
}

capture::ObjectRef WeakReferenceTo(PyObject* tensor) {
  PyObject* reference = PyWeakref_NewRef(tensor, nullptr);
  if (reference == nullptr) DropError();  // a subclass with __slots__ and no __weakref__
  return TakeRef(reference);
}

}  // namespace

const TensorFacts* Recorder::FindFacts(PyObject* tensor, const HostTensor& host) {
  return cache_.Find(tensor, [&](void* weak_reference, const capture::TensorIdentity& identity) {
    return PyWeakref_GetObject(static_cast<PyObject*>(weak_reference)) == tensor &&
           IdentityOf(tensor, host) == identity;
  });
}

void Recorder::StoreFacts(PyObject* tensor, const HostTensor& host, const TensorFacts& facts) {
  cache_.Store(tensor, IdentityOf(tensor, host), facts, [&] { return WeakReferenceTo(tensor); });
}

void Recorder::CountUnreadableTensor(std::string_view what) {
  observer().CountLoss("tensors_unreadable", ThisThread().entry_name + ": " + std::string(what));
}

Sight Recorder::LookAtMemory(PyObject* tensor, const HostTensor& host, bool may_cache,
                             capture::ObjectRef* awaited) {
  const DTypeKind kind = InfoOf(host.dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex) return {};
  if (!host.on_host) return LookOnDevice(tensor, awaited);
  const TensorView view = host.view();
  if (!may_cache || !tensors_.IsWorthRemembering(view)) return tensors_.Look(view);
  if (const TensorFacts* known = FindFacts(tensor, host)) {
    return {.hit = known->non_finite, .saturated = known->saturated};
  }
  const Sight sight = tensors_.Look(view);
  TensorFacts facts;
  facts.non_finite = sight.hit;
  facts.saturated = sight.saturated;
  StoreFacts(tensor, host, facts);
  return sight;
}

Sight Recorder::LookOnDevice(PyObject* tensor, capture::ObjectRef* awaited) {
  // One flag comes to the host, when the call is over; dtypes without isfinite() come as a whole.
  PyObject* all = nullptr;
  if (!calls_.config().finds_saturated) {
    all = CallAndRelease(CallAndRelease(Py_NewRef(tensor), "isfinite"), "all");
  }
  if (all != nullptr) {
    *awaited = TakeRef(all);
    return {};
  }
  PyObject* copy = PyObject_CallOneArg(hooks_.to_host, tensor);
  if (copy == nullptr) DropError();
  HostTensor host;
  Sight sight{.unknown = true};
  if (copy != nullptr && reader_.Read(copy, &host) && host.on_host) {
    sight = tensors_.Look(host.view());
  }
  Py_XDECREF(copy);
  if (sight.unknown) CountUnreadableTensor("a tensor whose memory cannot be read");
  return sight;
}

void Recorder::ReadAwaited(KeptTensors& kept) {
  const std::vector<capture::AwaitedFlag> flags = std::exchange(kept.awaited, {});
  PyObject* asked = PyList_New(0);
  for (const capture::AwaitedFlag& flag : flags) {
    if (asked != nullptr) PyList_Append(asked, ObjectOf(flag.is_finite));
  }
  PyObject* answers = hooks_.read_together == nullptr || asked == nullptr
                          ? nullptr
                          : PyObject_CallOneArg(hooks_.read_together, asked);
  DropError();
  const auto count = static_cast<Py_ssize_t>(flags.size());
  const bool is_complete =
      answers != nullptr && PyList_Check(answers) && PyList_GET_SIZE(answers) == count;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const capture::AwaitedFlag& flag = flags[static_cast<size_t>(i)];
    PyObject* answer = is_complete ? Py_NewRef(PyList_GET_ITEM(answers, i))
                                   : CallAndRelease(Py_NewRef(ObjectOf(flag.is_finite)), "item");
    const bool is_known = answer == Py_True || answer == Py_False;
    (flag.in_output ? kept.output_hit : kept.input_hit) |= answer == Py_False;
    kept.is_unknown |= !is_known;
    if (!is_known) CountUnreadableTensor("a flag that the device does not tell");
    Py_XDECREF(answer);
  }
  Py_XDECREF(answers);
  Py_XDECREF(asked);
}

Sight Recorder::LookAtDescribed(PyObject* tensor, EntryPacker* bare, capture::ObjectRef* awaited) {
  Description described;
  if (!Describe(tensor, /*with_bytes=*/false, &described)) {
    if (bare != nullptr) bare->Null();
    return {.unknown = true};
  }
  if (bare != nullptr) tensors_.PackBare(described.labels, *bare);
  std::string problem = described.problem;
  // Elements without values (meta tensors, freed storage): nobody can say that they are finite.
  Sight sight{.unknown = described.source == nullptr && HasElements(described.shape)};
  HostTensor host;
  if (described.source != nullptr && reader_.Read(described.source, &host)) {
    sight = LookAtMemory(described.source, host, /*may_cache=*/false, awaited);
  } else if (described.source != nullptr) {
    problem = "a tensor whose memory cannot be read";
  }
  if (problem.empty()) return sight;
  CountUnreadableTensor(problem);
  return {.hit = sight.hit, .unknown = true, .saturated = sight.saturated};
}

Sight Recorder::Look(PyObject* tensor, EntryPacker* bare, capture::ObjectRef* awaited) {
  HostTensor host;
  if (!IsPlainClass(Py_TYPE(tensor), types_, hooks_) || !reader_.Read(tensor, &host)) {
    return LookAtDescribed(tensor, bare, awaited);
  }
  if (bare != nullptr) {
    const Shape shape(host.sizes.begin(), host.sizes.end());
    tensors_.PackBare({.type = types_.texts.tensor_type,
                       .dtype_text = types_.texts.DTypeText(host.dtype),
                       .requires_grad = RequiresGrad(tensor, hooks_.names),
                       .shape = &shape},
                      *bare);
  }
  return LookAtMemory(tensor, host, hooks_.names.counts_every_write(), awaited);
}

void Recorder::LookAt(PyObject* tensor, std::string_view path, EntryPacker& out) {
  ThreadState& thread = ThisThread();
  KeptTensors& seen = *thread.kept;
  const NoOverride plain(types_, hooks_, tensor);
  KeptTensor kept;
  kept.begin = out.size();
  Sight sight;
  capture::ObjectRef awaited;
  if (calls_.search() == Search::kDifference) {
    thread.kept = nullptr;
    PackTensor(tensor, path, out);
    thread.kept = &seen;
  } else {
    sight = Look(tensor, calls_.search() == Search::kNanFlag ? &out : nullptr, &awaited);
  }
  kept.end = out.size();
  seen.Note(sight, path);
  seen.Await(std::move(awaited), path);
  if (!thread.keeps_tensors) return;
  kept.path = path;
  kept.requires_grad = RequiresGrad(tensor, hooks_.names);
  if (!seen.in_output) {
    kept.version = VersionOf(tensor);
    if (capture::MayWrite(seen.writes, path)) kept.copy = CopyBeforeCall(tensor, kept.version);
  }
  kept.tensor = TakeRef(Py_NewRef(tensor));
  seen.tensors.push_back(std::move(kept));
}

PyObject* Recorder::WhatIsLeft(PyObject* result, PyObject* const* args, Py_ssize_t count,
                               const KeptTensors& kept) const {
  if (result != Py_None || count == 0 || !calls_.looks_for_non_finite()) return result;
  return capture::WritesFirst(kept.writes) ? args[0] : result;
}

capture::ObjectRef Recorder::CopyBeforeCall(PyObject* tensor, std::optional<int64_t> version) {
  PyObject* copy = CallAndRelease(CallAndRelease(Py_NewRef(tensor), "detach"), "clone");
  if (copy == nullptr) return {};
  ThisThread().ShareCopy(tensor, version, [copy] { return TakeRef(Py_NewRef(copy)); });
  return TakeRef(copy);
}

void Recorder::PackKept(const KeptTensor& kept, EntryPacker& out) {
  PyObject* copy = ObjectOf(kept.copy);
  PyObject* tensor = copy != nullptr ? copy : ObjectOf(kept.tensor);
  const NoOverride plain(types_, hooks_, tensor);
  const bool is_plain = IsPlainClass(Py_TYPE(tensor), types_, hooks_);
  const bool is_changed =
      copy == nullptr && kept.version.has_value() && VersionOf(tensor) != kept.version;
  TensorLabels labels = LabelsOf(tensor);
  labels.requires_grad = kept.requires_grad;
  HostTensor host;
  if (is_changed && is_plain && reader_.Read(tensor, &host)) {
    // Values of after the call under the name of an input would be worse than none.
    observer().CountLoss("inputs_overwritten", ThisThread().entry_name + ": " + kept.path +
                                                   " was written to during the call; its values "
                                                   "before are not known");
    const Cut cut = CutOf(host.sizes, &labels);
    const Shape shape = cut.is_whole ? Shape(host.sizes.begin(), host.sizes.end()) : cut.sizes;
    labels.dtype_text = types_.texts.DTypeText(host.dtype);
    labels.shape = &shape;
    return tensors_.PackWithoutValues(labels, out);
  }
  if (is_plain && PackMemory(tensor, labels, /*may_cache=*/false, kept.path, out)) return;
  PackDescribed(tensor, kept.path, out);
}

TensorLabels Recorder::LabelsOf(PyObject* tensor) const {
  return {.type = types_.texts.tensor_type,
          .requires_grad = RequiresGrad(tensor, hooks_.names),
          .is_parameter = IsParameter(tensor)};
}

bool Recorder::IsParameter(PyObject* tensor) const {
  auto* const type = reinterpret_cast<PyTypeObject*>(hooks_.parameter_type);
  return type != nullptr && PyObject_TypeCheck(tensor, type) != 0;
}

bool Recorder::UseBatch(PyObject* schedule) {
  ForgetTensors();
  cuts_.ForgetBatch();
  if (schedule == Py_None) return true;
  std::vector<capture::BatchShare> shares;
  std::string problem = ReadShares(schedule, &shares);
  if (cuts_.request_id().empty()) {
    problem = "without request_id in config.json";
  }
  if (problem.empty()) {
    if (cuts_.UseBatch(shares)) return true;
    LogWarning(fmt::format("start(): request {} has no tokens in scheduled_tokens; step {} is not "
                           "recorded",
                           cuts_.request_id(), observer().step()));
    return false;
  }
  if (!warned_of_batch_) {
    LogWarning(fmt::format("start(): scheduled_tokens has no effect {}. All requests of the batch "
                           "are recorded",
                           problem));
  }
  warned_of_batch_ = true;
  return true;
}

Cut Recorder::CutOf(std::span<const int64_t> sizes, TensorLabels* labels) const {
  if (cuts_.are_none()) return {};
  // What a sparse tensor leaves out has no place in its memory.
  if (labels->shape != nullptr && !std::ranges::equal(*labels->shape, sizes)) return {};
  Cut cut = cuts_.Of(sizes, /*has_tokens=*/!labels->is_parameter);
  if (!cut.is_whole) labels->shape = nullptr;
  return cut;
}

PyObject* Recorder::PartOnDevice(PyObject* tensor, const Cut& cut) const {
  if (cut.is_whole) return Py_NewRef(tensor);
  const auto rank = static_cast<Py_ssize_t>(cut.sizes.size());
  PyObject* slices = hooks_.part_of == nullptr ? nullptr : PyTuple_New(rank);
  for (Py_ssize_t i = 0; slices != nullptr && i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    PyObject* begin = PyLong_FromLongLong(cut.begins[at]);
    PyObject* end = PyLong_FromLongLong(cut.begins[at] + cut.sizes[at]);
    PyObject* slice = PySlice_New(begin, end, nullptr);
    Py_XDECREF(begin);
    Py_XDECREF(end);
    if (slice == nullptr) {
      Py_CLEAR(slices);
    } else {
      PyTuple_SET_ITEM(slices, i, slice);
    }
  }
  PyObject* part = slices == nullptr ? nullptr
                                     : PyObject_CallFunctionObjArgs(hooks_.part_of, tensor, slices,
                                                                    nullptr);
  DropError();
  Py_XDECREF(slices);
  return part;
}

void Recorder::PackTensor(PyObject* tensor, std::string_view path, EntryPacker& out) {
  if (ThisThread().kept != nullptr) return LookAt(tensor, path, out);
  const NoOverride plain(types_, hooks_, tensor);
  const bool is_plain = IsPlainClass(Py_TYPE(tensor), types_, hooks_);
  if (is_plain && PackMemory(tensor, LabelsOf(tensor), /*may_cache=*/true, path, out)) {
    return;
  }
  PackDescribed(tensor, path, out);
}

void Recorder::PackArray(PyObject* tensor, std::string_view dtype_text, std::string_view path,
                         EntryPacker& out) {
  const TensorLabels labels{.type = "numpy.ndarray", .dtype_text = dtype_text};
  // Arrays never make a hit; those of a hit are recorded as they are now.
  if (!PackMemory(tensor, labels, /*may_cache=*/false, path, out)) out.Null();
}

bool Recorder::PackLate(PyObject* tensor, const HostTensor& host, TensorLabels labels,
                        std::string_view path, EntryPacker& out) {
  const ThreadState& thread = ThisThread();
  if (labels.implicit_zeros > 0 || !tensors_.TakesLateValues()) return false;
  const Cut cut = CutOf(host.sizes, &labels);
  PyObject* hook =
      tensors_.WantsEveryElement(thread) ? hooks_.copy_from_device : hooks_.reduce_on_device;
  PyObject* part = hook == nullptr ? nullptr : PartOnDevice(tensor, cut);
  PyObject* answer = part == nullptr ? nullptr : PyObject_CallOneArg(hook, part);
  Py_XDECREF(part);
  const bool is_number = answer != nullptr && PyLong_CheckExact(answer) != 0;
  const int64_t number = is_number ? PyLong_AsLongLong(answer) : 0;
  Py_XDECREF(answer);
  DropError();
  if (!is_number) return false;
  const std::span<const int64_t> sizes = cut.is_whole ? host.sizes : cut.sizes;
  if (number < 0) {
    CountUnreadableTensor("a tensor of work that is captured into a graph");
    const Shape shape(sizes.begin(), sizes.end());
    tensors_.PackWithoutValues(
        {.type = labels.type,
         .dtype_text = labels.dtype_text.empty() ? types_.texts.DTypeText(host.dtype)
                                                 : labels.dtype_text,
         .requires_grad = labels.requires_grad,
         .shape = labels.shape == nullptr ? &shape : labels.shape,
         .extra_members = labels.extra_members},
        out);
    return true;
  }
  const auto late = static_cast<uint64_t>(number);
  tensors_.PackLate(thread, {late, host.dtype, sizes}, path, labels, out);
  return true;
}

bool Recorder::AddLate(uint64_t number, PyObject* host_tensor) {
  HostTensor host;
  if (!reader_.Read(host_tensor, &host) || !host.on_host) return false;
  const nanobind::gil_scoped_release release;
  tensors_.AddLate(number, host.view());
  return true;
}

bool Recorder::PackMemory(PyObject* tensor, TensorLabels labels, bool may_cache,
                          std::string_view path, EntryPacker& out) {
  HostTensor host;
  if (!reader_.Read(tensor, &host)) return false;
  if (!host.on_host && PackLate(tensor, host, labels, path, out)) return true;
  const Cut cut = CutOf(host.sizes, &labels);
  PyObject* copy = nullptr;
  if (!host.on_host || (types_.dtypes == nullptr && IsLazy(tensor, host.dtype))) {
    copy = PyObject_CallOneArg(hooks_.to_host, tensor);
    if (copy == nullptr) DropError();
    Py_CLEAR(host.capsule);
    if (copy == nullptr || !reader_.Read(copy, &host) || !host.on_host) {
      Py_XDECREF(copy);
      return false;
    }
  }
  // A copy dies with this call, so only tensors of the training itself are remembered.
  may_cache =
      may_cache && copy == nullptr && tensors_.remembers() && hooks_.names.counts_every_write();
  const TensorFacts* known = may_cache ? FindFacts(tensor, host) : nullptr;
  const bool is_new = known == nullptr;
  const TensorView view = cut.Of(host.view());
  // What is known is copied: a large scan gives up the interpreter lock, and other threads use the
  // cache.
  const capture::TensorRecorder::Reading reading =
      tensors_.Read(ThisThread(), view, path, labels.implicit_zeros, known);
  if (is_new && may_cache) StoreFacts(tensor, host, reading.facts);
  tensors_.Pack(view, reading, labels, out);
  Py_XDECREF(copy);
  return true;
}

// describe_tensor(tensor, with_bytes) answers with
//   (type, dtype text, shape, requires_grad, source, implicit zeros, extra, problem)
// `source`: None, or a tensor that holds the values; `with_bytes`: it should have every element,
// because a file or a digest is wanted. `extra`: None, or a dict of further keys of the record.
// `problem`: None, or why values that exist are not there.
bool Recorder::Describe(PyObject* tensor, bool with_bytes, Description* out) {
  constexpr Py_ssize_t kType = 0, kDType = 1, kShape = 2, kGrad = 3, kSource = 4, kZeros = 5,
                       kExtra = 6, kProblem = 7, kFields = 8;
  out->answer = PyObject_CallFunctionObjArgs(hooks_.describe_tensor, tensor,
                                             with_bytes ? Py_True : Py_False, nullptr);
  if (out->answer == nullptr || !PyTuple_Check(out->answer) ||
      PyTuple_GET_SIZE(out->answer) != kFields) {
    DropError();
    CountUnreadableTensor("a tensor that cannot be described");
    return false;
  }
  const auto field = [out](Py_ssize_t i) { return PyTuple_GET_ITEM(out->answer, i); };
  out->shape = ShapeOf(field(kShape));
  out->labels = {.type = TextOf(field(kType)),
                 .dtype_text = TextOf(field(kDType)),
                 .requires_grad = field(kGrad) == Py_True,
                 .shape = &out->shape};
  out->labels.implicit_zeros = PyLong_AsUnsignedLongLongMask(field(kZeros));
  if (PyErr_Occurred() != nullptr) DropError();
  if (PyDict_Check(field(kExtra))) {
    PackJsonMembers(field(kExtra), 0, out->extra_members);
    out->labels.extra_members = out->extra_members.bytes();
  }
  if (IsTensor(field(kSource))) out->source = field(kSource);
  if (PyUnicode_Check(field(kProblem))) out->problem = TextOf(field(kProblem));
  return true;
}

void Recorder::PackDescribed(PyObject* tensor, std::string_view path, EntryPacker& out) {
  Description described;
  const bool with_bytes = tensors_.WantsEveryElement(ThisThread()) || !cuts_.are_none();
  if (!Describe(tensor, with_bytes, &described)) {
    tensors_.PackWithoutValues({.type = types_.texts.tensor_type}, out);
    return;
  }
  described.labels.is_parameter = IsParameter(tensor);
  std::string problem = described.problem;
  if (described.source == nullptr) {
    const Cut cut = CutOf(described.shape, &described.labels);
    if (!cut.is_whole) described.shape = cut.sizes;
    described.labels.shape = &described.shape;
    tensors_.PackWithoutValues(described.labels, out);
  } else if (!PackMemory(described.source, described.labels, /*may_cache=*/false, path, out)) {
    problem = "a tensor whose memory cannot be read";
    tensors_.PackWithoutValues(described.labels, out);
  }
  if (!problem.empty()) CountUnreadableTensor(problem);
}

}  // namespace plumbline::python
