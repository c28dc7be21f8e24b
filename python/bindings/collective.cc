#include "collective.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <utility>

#include "callback.h"
#include "formats/json/dump_json.h"
#include "python_program.h"
#include "recorder.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

constexpr std::string_view kIncomplete = "incomplete";
constexpr std::string_view kWaited = "waited";
// Class of what a gathered call returns instead of a handle: it refuses to be waited for.
constexpr std::string_view kNoHandle = "_IllegalWork";

// The value as it is at this moment: the user may empty a list of tensors before the call is
// complete.
capture::ObjectRef Pin(PyObject* value) {
  if (!PyList_CheckExact(value)) return TakeRef(Py_NewRef(value));
  PyObject* copy = PyList_GetSlice(value, 0, PyList_GET_SIZE(value));
  if (copy == nullptr) DropError();
  return TakeRef(copy != nullptr ? copy : Py_NewRef(value));
}

}  // namespace

Collectives::Collectives(Recorder& recorder, CollectiveHooks hooks)
    : recorder_(recorder), hooks_(hooks) {}

Collectives::~Collectives() {
  for (PyObject* object :
       {hooks_.handle_type, hooks_.has_succeeded, hooks_.postponed, hooks_.before}) {
    Py_XDECREF(object);
  }
}

PyObject* Collectives::Call(const CollectiveApi& api, PyObject* original, PyObject* const* args,
                            size_t nargsf, PyObject* kwnames) {
  ThreadState& thread = ThisThread();
  capture::CallRecorder& calls = recorder_.calls();
  const CallWatch* watch = recorder_.watch();
  if (watch != nullptr && watch->is_open()) {
    // Never run a second time, and nothing inside it is looked at.
    ++thread.in_api;
    PyObject* result = PyObject_Vectorcall(original, args, nargsf, kwnames);
    --thread.in_api;
    return result;
  }
  if (thread.in_api > 0 || !calls.Records(thread)) {
    return PyObject_Vectorcall(original, args, nargsf, kwnames);
  }
  const ModeOff mode_off(recorder_.hooks(), thread);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t total = count + (kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames));
  capture::ApiCall call = calls.NameApi(api.api);
  KeptTensors& kept = thread.call_kept;
  {
    const InTool in_tool(thread, recorder_.gate());
    if (pending_.is_sweep_due()) Sweep();
    calls.Select(call);
    calls.BeginApi(thread, call, call.is_selected ? recorder_.UseStack() : capture::StackInfo());
    kept.writes = capture::Writes::kEverything;
    calls.NameEntry(thread, call.name, &kept);
    if (call.is_selected) PackInputs(api, args, count, kwnames);
    if (call.is_selected && WantsDirection(calls.config().data_mode, CallKind::kForward)) {
      thread.call.Key(dump_json::kIsRecompute);
      thread.call.Bool(call.is_recompute);
    }
  }
  std::vector<capture::ObjectRef> values;
  for (Py_ssize_t i = 0; i < total; ++i) values.push_back(Pin(args[i]));
  ++thread.in_api;
  PyObject* result = PyObject_Vectorcall(original, args, nargsf, kwnames);
  --thread.in_api;
  const InTool in_tool(thread, recorder_.gate());
  const KeepException hold;
  if (result != nullptr && api.rule.gives_result) values = ItemsOf(result);
  const bool open = calls.StillHasPlace(call.epoch, call.name);
  std::vector<capture::ObjectRef> handles;
  if (result != nullptr) handles = HandlesOf(result);
  const bool later = result != nullptr && (!handles.empty() || PyDict_GET_SIZE(hooks_.postponed));
  if (open && call.is_selected && later) {
    Await({std::move(call.name), &api, std::move(values), TakeInputs(thread), {}},
          std::move(handles));
    calls.AppendEntry(thread.call.Finish());
    return result;
  }
  if (open && call.is_selected && result != nullptr) {
    kept.in_output = true;
    calls.NameEntry(thread, call.name, &kept);
    PackOutputs(api, values, thread.call);
  }
  if (open) calls.EndEntry(thread, call.name, thread.call, kept, /*is_listed=*/true);
  values.clear();  // while an error of the call is set aside
  return result;
}

void Collectives::Await(Begun call, std::vector<capture::ObjectRef> handles) {
  const bool is_gathered = handles.empty() && regions_ > 0;
  const uint64_t id = pending_.Add(std::move(call), std::move(handles));
  if (is_gathered) gathered_.push_back(id);
}

PackedPart Collectives::TakeInputs(ThreadState& thread) const {
  PackedPart inputs;
  if (recorder_.calls().search() == capture::Search::kNothing) return inputs;
  KeptTensors& kept = thread.call_kept;
  const auto members = thread.call.bytes().subspan(kept.head);
  inputs.bytes.assign(members.begin(), members.end());
  kept.TakeOff(kept.head);
  thread.call.Truncate(kept.head);
  inputs.kept = std::move(kept);
  return inputs;
}

void Collectives::PackInputs(const CollectiveApi& api, PyObject* const* args, Py_ssize_t count,
                             PyObject* kwnames) {
  if (!WantsInput(recorder_.observer().config().data_mode, CallKind::kForward)) return;
  const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  std::vector<PyObject*> values(args, args + count + named);
  std::vector<nb::object> stand_ins;
  const auto mask = [&](PyObject*& value) {
    if (hooks_.before == Py_None) {
      value = Py_None;
      return;
    }
    PyObject* stand_in = PyObject_CallOneArg(hooks_.before, value);
    if (stand_in == nullptr) PyErr_Clear();
    value = stand_in == nullptr ? Py_None : stand_in;
    stand_ins.push_back(nb::steal(stand_in));
  };
  for (const Py_ssize_t at : api.rule.masked_inputs) {
    if (at < count) mask(values[static_cast<size_t>(at)]);
  }
  for (Py_ssize_t i = 0; i < named; ++i) {
    const std::string_view keyword = TextOf(PyTuple_GET_ITEM(kwnames, i));
    const auto& masked = api.rule.masked_names;
    if (std::find(masked.begin(), masked.end(), keyword) == masked.end()) continue;
    mask(values[static_cast<size_t>(count + i)]);
  }
  ThreadState& thread = ThisThread();
  ValueWalker walker(recorder_.types(), recorder_, thread.with_paths());
  walker.List(dump_json::kInputArgs, "input", values.data(), count, thread.call);
  walker.Keywords(dump_json::kInputKwargs, kwnames, values.data() + count, thread.call);
  recorder_.calls().CountUnreadable(ThisThread(), walker.failures());
}

void Collectives::PackOutputs(const CollectiveApi& api,
                              const std::vector<capture::ObjectRef>& owned, EntryPacker& out) {
  // Background threads have written to memory that belongs to any number of tensors, past every
  // version counter.
  recorder_.ForgetTensors();
  if (!WantsOutput(recorder_.observer().config().data_mode, CallKind::kForward)) return;
  std::vector<PyObject*> values;
  for (const capture::ObjectRef& value : owned) values.push_back(ObjectOf(value));
  for (const Py_ssize_t at : api.rule.masked_outputs) {
    if (static_cast<size_t>(at) < values.size()) values[static_cast<size_t>(at)] = Py_None;
  }
  ValueWalker walker(recorder_.types(), recorder_, ThisThread().with_paths());
  walker.List(dump_json::kOutput, "output", values.data(), static_cast<Py_ssize_t>(values.size()),
              out);
  recorder_.calls().CountUnreadable(ThisThread(), walker.failures());
}

bool Collectives::IsHandle(PyObject* value) const {
  return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(hooks_.handle_type)) != 0 &&
         TypeNameOf(value) != kNoHandle;
}

std::vector<capture::ObjectRef> Collectives::ItemsOf(PyObject* result) const {
  std::vector<capture::ObjectRef> values;
  const bool is_tuple = PyTuple_Check(result) != 0;
  for (Py_ssize_t i = 0; i < (is_tuple ? PyTuple_GET_SIZE(result) : 1); ++i) {
    PyObject* item = is_tuple ? PyTuple_GET_ITEM(result, i) : result;
    values.push_back(Pin(IsHandle(item) ? Py_None : item));
  }
  return values;
}

std::vector<capture::ObjectRef> Collectives::HandlesOf(PyObject* result) const {
  std::vector<capture::ObjectRef> handles;
  const auto add = [&](PyObject* item) {
    const bool is_new = std::ranges::find(handles, item, ObjectOf) == handles.end();
    if (is_new && IsHandle(item)) handles.push_back(TakeRef(Py_NewRef(item)));
  };
  if (PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(result); ++i) add(PyList_GET_ITEM(result, i));
  } else if (PyTuple_Check(result)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) add(PyTuple_GET_ITEM(result, i));
  } else {
    add(result);
  }
  return handles;
}

void Collectives::Completed(PyObject* handle) {
  ThreadState& thread = ThisThread();
  if (!pending_.Awaits(handle) || !recorder_.calls().MayRecordLate(thread)) return;
  const InTool in_tool(thread, recorder_.gate());
  const KeepException hold;
  auto completion = pending_.Complete(handle);
  if (completion.complete) Record(*completion.complete, Mark::kNone);
}

void Collectives::BeginGathering() {
  if (regions_++ > 0) {
    regions_overlap_ = true;
  } else {
    gathered_.clear();
  }
}

void Collectives::EndGathering(PyObject* handles) {
  if (--regions_ > 0) return;
  const std::vector<uint64_t> ids = std::exchange(gathered_, {});
  if (std::exchange(regions_overlap_, false) || handles == nullptr) return;
  ThreadState& thread = ThisThread();
  if (!recorder_.calls().MayRecordLate(thread)) return;
  const InTool in_tool(thread, recorder_.gate());
  const KeepException hold;
  std::vector<Begun> calls;
  for (const uint64_t id : ids) {
    auto pending = pending_.Take(id);
    if (pending) calls.push_back(std::move(pending->call));  // else the window has ended since
  }
  if (calls.empty()) return;
  Begun first = std::move(calls.front());
  calls.erase(calls.begin());
  first.together = std::move(calls);
  std::vector<capture::ObjectRef> awaited = HandlesOf(handles);
  if (awaited.empty()) {
    Record(first, Mark::kNone);
  } else {
    pending_.Add(std::move(first), std::move(awaited));
  }
}

void Collectives::Finish() {
  ThreadState& thread = ThisThread();
  const bool open = recorder_.calls().MayRecordLate(thread);
  const InTool in_tool(thread, recorder_.gate());
  const KeepException hold;
  for (const uint64_t id : pending_.Find([](const auto&) { return true; })) {
    auto pending = pending_.Take(id);
    if (!pending || !open) continue;  // waited for by another thread meanwhile
    Record(pending->call, HasSucceeded(pending->handles) ? Mark::kNotWaited : Mark::kIncomplete);
  }
  pending_.EndSweep();
}

bool Collectives::HasSucceeded(const std::vector<capture::ObjectRef>& handles) const {
  // References of its own: another thread may learn of their completion meanwhile.
  std::vector<nanobind::object> asked;
  for (const capture::ObjectRef& handle : handles) {
    asked.push_back(nanobind::borrow(ObjectOf(handle)));
  }
  bool all = !asked.empty();
  for (const nanobind::object& handle : asked) {
    PyObject* answer = PyObject_CallOneArg(hooks_.has_succeeded, handle.ptr());
    if (answer == nullptr) DropError();
    all = all && answer == Py_True;
    Py_XDECREF(answer);
  }
  return all;
}

void Collectives::Sweep() {
  const auto are_dropped = [](const std::vector<capture::ObjectRef>& handles) {
    const bool ours = std::ranges::all_of(
        handles, [](const capture::ObjectRef& handle) { return Py_REFCNT(ObjectOf(handle)) == 1; });
    return ours && !handles.empty();
  };
  for (const uint64_t id : pending_.Find(are_dropped)) {
    const auto* known = pending_.At(id);
    if (known == nullptr || !HasSucceeded(known->handles)) continue;
    auto pending = pending_.Take(id);
    if (pending) Record(pending->call, Mark::kNotWaited);  // else waited for meanwhile
  }
  pending_.EndSweep();
}

void Collectives::Record(Begun& call, Mark mark) {
  ThreadState& thread = ThisThread();
  const ModeOff mode_off(recorder_.hooks(), thread);
  capture::CallRecorder& calls = recorder_.calls();
  EntryPacker& out = thread.event;  // the wait may be part of an API whose entry is in flight
  KeptTensors kept;
  calls.BeginLate(thread, call.name, nullptr, std::move(call.inputs), &kept);
  kept.in_output = true;
  calls.NameEntry(thread, call.name, &kept);
  if (mark != Mark::kIncomplete) PackOutputs(*call.api, call.values, out);
  if (mark == Mark::kIncomplete) {
    out.Key(kIncomplete);
    out.Bool(true);
  } else if (mark == Mark::kNotWaited) {
    out.Key(kWaited);
    out.Bool(false);
  }
  // Its stack and parent were listed when it began.
  calls.EndEntry(thread, call.name, out, kept, /*is_listed=*/false);
  for (Begun& other : call.together) Record(other, mark);
}

}  // namespace plumbline::python
