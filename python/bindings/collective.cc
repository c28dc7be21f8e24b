#include "collective.h"

#include <algorithm>
#include <utility>

#include "callback.h"
#include "formats/dump_json.h"
#include "recorder.h"

namespace plumbline::python {
namespace {

constexpr std::string_view kIncomplete = "incomplete";
constexpr std::string_view kWaited = "waited";
constexpr size_t kSweepEvery = 64;  // more calls in flight than the last sweep left

// The value as it is at this moment: the user may empty a list of tensors before the call is
// complete. New reference.
PyObject* Pin(PyObject* value) {
  if (!PyList_CheckExact(value)) return Py_NewRef(value);
  PyObject* copy = PyList_GetSlice(value, 0, PyList_GET_SIZE(value));
  if (copy != nullptr) return copy;
  DropError();
  return Py_NewRef(value);
}

}  // namespace

Collectives::Collectives(Recorder& recorder, CollectiveHooks hooks)
    : recorder_(recorder), hooks_(hooks), sweep_at_(kSweepEvery) {}

Collectives::~Collectives() {
  while (!calls_.empty()) Release(Take(calls_.begin()->first));
  for (PyObject* object : {hooks_.handle_type, hooks_.has_succeeded, hooks_.postponed}) {
    Py_XDECREF(object);
  }
}

PyObject* Collectives::Call(const CollectiveApi& api, PyObject* original, PyObject* const* args,
                            size_t nargsf, PyObject* kwnames) {
  ThreadState& thread = ThisThread();
  if (thread.in_api > 0 || !recorder_.Recording(thread)) {
    return PyObject_Vectorcall(original, args, nargsf, kwnames);
  }
  const ModeOff mode_off(recorder_.hooks_, thread);
  capture::Observer& observer = recorder_.observer();
  const uint64_t epoch = observer.epoch();
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t total = count + (kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames));
  std::string name = observer.counters().NameOf(api.api);
  name.append(".").append(std::to_string(observer.counters().Next(api.api))).append(".forward");
  bool selected = true;
  KeptTensors& kept = thread.call_kept;
  {
    const InTool in_tool(thread, recorder_.gate_);
    if (calls_.size() >= sweep_at_) Sweep();
    if (!observer.selection().selects_all()) selected = observer.selection().SelectApi(name);
    StackInfo stack;
    if (selected) recorder_.UseStack(&stack);
    const std::string_view parent =
        thread.modules.empty() ? std::string_view() : std::string_view(thread.modules.back().name);
    thread.call.Begin(name, recorder_.wants_parents_ ? &parent : nullptr, stack.id);
    kept.Clear();
    kept.head = thread.call.size();
    kept.writes = Writes::kEverything;
    recorder_.NameEntry(thread, name, &kept);
    if (selected) PackInputs(api, args, count, kwnames);
    if (selected && WantsDirection(observer.config().data_mode, CallKind::kForward)) {
      thread.call.Key(dump_json::kIsRecompute);
      thread.call.Bool(stack.is_recompute);
    }
  }
  std::vector<PyObject*> values;
  for (Py_ssize_t i = 0; i < total; ++i) values.push_back(Pin(args[i]));
  ++thread.in_api;
  PyObject* result = PyObject_Vectorcall(original, args, nargsf, kwnames);
  --thread.in_api;
  const InTool in_tool(thread, recorder_.gate_);
  const KeepException hold;
  if (result != nullptr && api.rule.gives_result) TakeItems(result, values);
  std::vector<PyObject*> handles;
  const bool open = recorder_.StillHasPlace(epoch, name);
  const bool later =
      result != nullptr && (HandlesOf(result, &handles) || PyDict_GET_SIZE(hooks_.postponed) > 0);
  if (open && selected && later) {
    Postpone({std::move(name), &api, std::move(values), {}, TakeInputs(thread)}, handles);
    recorder_.AppendEntry(thread.call.Finish());
    return result;
  }
  if (open && selected && result != nullptr) {
    kept.in_output = true;
    recorder_.NameEntry(thread, name, &kept);
    PackOutputs(api, values, thread.call);
  }
  if (open) recorder_.EndEntry(name, thread.call, kept, /*is_listed=*/true);
  for (PyObject* value : values) Py_DECREF(value);
  return result;
}

PackedPart Collectives::TakeInputs(ThreadState& thread) const {
  PackedPart inputs;
  if (recorder_.search_ == Recorder::Search::kNothing) return inputs;
  KeptTensors& kept = thread.call_kept;
  const auto members = thread.call.bytes().subspan(kept.head);
  inputs.bytes.assign(members.begin(), members.end());
  for (KeptTensor& tensor : kept.tensors) {
    tensor.begin -= kept.head;
    tensor.end -= kept.head;
  }
  thread.call.Truncate(kept.head);
  inputs.kept = std::move(kept);
  return inputs;
}

void Collectives::PackInputs(const CollectiveApi& api, PyObject* const* args, Py_ssize_t count,
                             PyObject* kwnames) {
  if (!WantsInput(recorder_.observer().config().data_mode, CallKind::kForward)) return;
  const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  std::vector<PyObject*> values(args, args + count + named);
  for (const Py_ssize_t at : api.rule.masked_inputs) {
    if (at < count) values[static_cast<size_t>(at)] = Py_None;
  }
  for (Py_ssize_t i = 0; i < named; ++i) {
    const std::string_view keyword = TextOf(PyTuple_GET_ITEM(kwnames, i));
    const auto& masked = api.rule.masked_names;
    if (std::find(masked.begin(), masked.end(), keyword) == masked.end()) continue;
    values[static_cast<size_t>(count + i)] = Py_None;
  }
  ThreadState& thread = ThisThread();
  ValueWalker walker(recorder_.types_, recorder_, thread.with_paths());
  walker.List(dump_json::kInputArgs, "input", values.data(), count, thread.call);
  walker.Keywords(dump_json::kInputKwargs, kwnames, values.data() + count, thread.call);
  recorder_.CountFailures(walker);
}

void Collectives::PackOutputs(const CollectiveApi& api, std::vector<PyObject*> values,
                              EntryPacker& out) {
  // Background threads have written to memory that belongs to any number of tensors, past every
  // version counter.
  recorder_.ForgetTensors();
  if (!WantsOutput(recorder_.observer().config().data_mode, CallKind::kForward)) return;
  for (const Py_ssize_t at : api.rule.masked_outputs) {
    if (static_cast<size_t>(at) < values.size()) values[static_cast<size_t>(at)] = Py_None;
  }
  ValueWalker walker(recorder_.types_, recorder_, ThisThread().with_paths());
  walker.List(dump_json::kOutput, "output", values.data(), static_cast<Py_ssize_t>(values.size()),
              out);
  recorder_.CountFailures(walker);
}

bool Collectives::IsHandle(PyObject* value) const {
  return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(hooks_.handle_type)) != 0;
}

void Collectives::TakeItems(PyObject* result, std::vector<PyObject*>& values) const {
  for (PyObject* value : values) Py_DECREF(value);
  values.clear();
  const bool is_tuple = PyTuple_Check(result) != 0;
  for (Py_ssize_t i = 0; i < (is_tuple ? PyTuple_GET_SIZE(result) : 1); ++i) {
    PyObject* item = is_tuple ? PyTuple_GET_ITEM(result, i) : result;
    values.push_back(IsHandle(item) ? Py_NewRef(Py_None) : Pin(item));
  }
}

bool Collectives::HandlesOf(PyObject* result, std::vector<PyObject*>* handles) const {
  const auto add = [&](PyObject* item) {
    const bool is_new = std::find(handles->begin(), handles->end(), item) == handles->end();
    if (is_new && IsHandle(item)) handles->push_back(item);
  };
  if (PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(result); ++i) add(PyList_GET_ITEM(result, i));
  } else if (PyTuple_Check(result)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) add(PyTuple_GET_ITEM(result, i));
  } else {
    add(result);
  }
  return !handles->empty();
}

void Collectives::Postpone(Pending postponed, const std::vector<PyObject*>& handles) {
  const uint64_t id = next_id_++;
  Pending& call = calls_[id];
  call = std::move(postponed);
  for (PyObject* handle : handles) {
    // The handle is kept: the framework makes a new Python object for a handle that was dropped.
    if (by_handle_.emplace(handle, id).second) call.handles.push_back(Py_NewRef(handle));
  }
}

void Collectives::Completed(PyObject* handle) {
  const auto at = by_handle_.find(handle);
  ThreadState& thread = ThisThread();
  if (at == by_handle_.end() || !recorder_.MayRecordBackward(thread)) return;
  const InTool in_tool(thread, recorder_.gate_);
  const KeepException hold;
  const uint64_t id = at->second;
  by_handle_.erase(at);
  Pending& call = calls_.at(id);
  std::erase(call.handles, handle);
  if (call.handles.empty()) {
    Pending done = Take(id);
    Record(done, Mark::kNone);
    Release(done);
  }
  Py_DECREF(handle);
}

void Collectives::Finish() {
  ThreadState& thread = ThisThread();
  const bool open = recorder_.MayRecordBackward(thread);
  const InTool in_tool(thread, recorder_.gate_);
  const KeepException hold;
  std::vector<uint64_t> ids;
  for (const auto& [id, call] : calls_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const uint64_t id : ids) {
    if (!calls_.contains(id)) continue;  // waited for by another thread meanwhile
    Pending call = Take(id);
    if (open) Record(call, HasSucceeded(call.handles) ? Mark::kNotWaited : Mark::kIncomplete);
    Release(call);
  }
  sweep_at_ = kSweepEvery;
}

bool Collectives::HasSucceeded(std::vector<PyObject*> handles) const {
  bool all = !handles.empty();
  for (PyObject* handle : handles) Py_INCREF(handle);
  for (PyObject* handle : handles) {
    PyObject* answer = PyObject_CallOneArg(hooks_.has_succeeded, handle);
    if (answer == nullptr) DropError();
    all = all && answer == Py_True;
    Py_XDECREF(answer);
    Py_DECREF(handle);
  }
  return all;
}

void Collectives::Sweep() {
  std::vector<uint64_t> dropped;
  for (const auto& [id, call] : calls_) {
    const bool ours = std::all_of(call.handles.begin(), call.handles.end(),
                                  [](PyObject* handle) { return Py_REFCNT(handle) == 1; });
    if (ours && !call.handles.empty()) dropped.push_back(id);
  }
  std::sort(dropped.begin(), dropped.end());
  for (const uint64_t id : dropped) {
    const auto at = calls_.find(id);
    if (at == calls_.end() || !HasSucceeded(at->second.handles)) continue;
    if (!calls_.contains(id)) continue;  // waited for by another thread meanwhile
    Pending call = Take(id);
    Record(call, Mark::kNotWaited);
    Release(call);
  }
  sweep_at_ = calls_.size() + kSweepEvery;
}

Collectives::Pending Collectives::Take(uint64_t id) {
  const auto at = calls_.find(id);
  Pending call = std::move(at->second);
  calls_.erase(at);
  for (PyObject* handle : call.handles) by_handle_.erase(handle);
  return call;
}

void Collectives::Record(Pending& call, Mark mark) {
  ThreadState& thread = ThisThread();
  const ModeOff mode_off(recorder_.hooks_, thread);
  EntryPacker& out = thread.event;  // the wait may be part of an API whose entry is in flight
  out.Begin(call.name, nullptr, 0);
  KeptTensors kept;
  kept.head = out.size();
  kept.Append(std::move(call.inputs.kept), out.size());
  out.Raw(call.inputs.bytes);
  kept.in_output = true;
  recorder_.NameEntry(thread, call.name, &kept);
  if (mark != Mark::kIncomplete) PackOutputs(*call.api, call.values, out);
  if (mark == Mark::kIncomplete) {
    out.Key(kIncomplete);
    out.Bool(true);
  } else if (mark == Mark::kNotWaited) {
    out.Key(kWaited);
    out.Bool(false);
  }
  // Its stack and parent were listed when it began.
  recorder_.EndEntry(call.name, out, kept, /*is_listed=*/false);
}

void Collectives::Release(const Pending& call) {
  for (PyObject* object : call.values) Py_DECREF(object);
  for (PyObject* object : call.handles) Py_DECREF(object);
}

}  // namespace plumbline::python
