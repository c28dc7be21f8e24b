#include "recorder.h"

#include "callback.h"
#include "errors.h"
#include "formats/json/dump_json.h"
#include "grad_hook.h"
#include "module_buffers.h"
#include "python_program.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using capture::RecomputeMark;
using capture::Search;
using dump_json::kBuffers;
using dump_json::kInput;
using dump_json::kInputArgs;
using dump_json::kInputKwargs;
using dump_json::kIsRecompute;
using dump_json::kOutput;
using dump_json::kParameters;

void PackRecompute(bool is_recompute, EntryPacker& out) {
  out.Key(kIsRecompute);
  out.Bool(is_recompute);
}

// An attribute `inplace` of the module itself, as ReLU and Dropout have.
bool WorksInPlace(PyObject* module) {
  static PyObject* const dict_name = PyUnicode_InternFromString("__dict__");
  static PyObject* const name = PyUnicode_InternFromString("inplace");
  const nb::object attributes = nb::steal(CheckedPython(PyObject_GetAttr(module, dict_name)));
  return PyDict_Check(attributes.ptr()) && PyDict_GetItem(attributes.ptr(), name) == Py_True;
}

bool KeywordIs(PyObject* kwnames, PyObject* const* values, std::string_view name, PyObject* value) {
  const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (TextOf(PyTuple_GET_ITEM(kwnames, i)) == name) return value == nullptr || values[i] == value;
  }
  return false;
}

PyObject* CallInside(ThreadState& thread, PyObject* original, PyObject* const* args, size_t nargsf,
                     PyObject* kwnames) {
  ++thread.in_api;
  PyObject* result = PyObject_Vectorcall(original, args, nargsf, kwnames);
  --thread.in_api;
  return result;
}

}  // namespace

capture::WriteHints HintsOf(PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  return {.has_out = KeywordIs(kwnames, args + count, "out", nullptr),
          .is_in_place = KeywordIs(kwnames, args + count, "inplace", Py_True),
          .ends_in_true = count > 1 && args[count - 1] == Py_True};
}

ThreadState& ThisThread() {
  // Recording state belongs to a thread, and the wrapped APIs have no argument to carry it.
  thread_local ThreadState state;
  return state;
}

ThreadState::~ThreadState() {
  // Left by a call that an interrupt cut off. Python objects cannot be released when a thread or
  // the process ends.
  if (!module_calls.empty()) (void)new std::vector<ModuleCall>(std::move(module_calls));
  // Tensors they keep are leaked likewise (TakeRef).
}

Recorder::Recorder(std::unique_ptr<capture::Observer> observer, FrameworkTypes types,
                   FrameworkHooks hooks)
    : types_(std::move(types)),
      hooks_(hooks),
      calls_(std::move(observer), types_.texts.tells_grad, PythonThreads(), *this),
      tensors_(calls_, types_.texts),
      reader_(types_),
      cuts_(calls_.config().slices, calls_.config().request_id) {}

Recorder::~Recorder() {
  Release(types_);
  Release(hooks_);
}

capture::StackInfo Recorder::UseStack() {
  if (!calls_.wants_stacks()) return {};
  const capture::StackInfo stack = stacks_.Current();
  calls_.UseStack(stack.id, stacks_.FramesOf(stack.id));
  return stack;
}

PyObject* Recorder::CallApi(uint32_t api, PyObject* original, PyObject* const* args, size_t nargsf,
                            PyObject* kwnames) {
  if (watch_ != nullptr) return watch_->Call(api, original, args, nargsf, kwnames);
  ThreadState& thread = ThisThread();
  if (!calls_.RecordsApi(thread)) return PyObject_Vectorcall(original, args, nargsf, kwnames);
  const ModeOff mode_off(hooks_, thread);
  if (calls_.OnlyEnters(thread)) return CallInside(thread, original, args, nargsf, kwnames);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  capture::ApiCall call = calls_.NameApi(api);
  KeptTensors& kept = thread.call_kept;
  {
    const InTool in_tool(thread, gate());
    calls_.Select(call);
    calls_.BeginApi(thread, call, call.is_selected ? UseStack() : capture::StackInfo());
    if (calls_.search() != Search::kNothing) {
      kept.writes = capture::WritesOf(call.api, HintsOf(args, count, kwnames));
    }
    if (calls_.WantsInput(call)) {
      calls_.NameEntry(thread, call.name, &kept);
      ValueWalker walker(types_, *this, thread.with_paths());
      walker.List(kInputArgs, "input", args, count, thread.call);
      walker.Keywords(kInputKwargs, kwnames, args + count, thread.call);
      calls_.CountUnreadable(thread, walker.failures());
    }
    if (call.mark == RecomputeMark::kBeforeOutput) PackRecompute(call.is_recompute, thread.call);
  }
  PyObject* result = CallInside(thread, original, args, nargsf, kwnames);
  if (!calls_.StillHasPlace(call.epoch, call.name)) return result;
  const InTool in_tool(thread, gate());
  const KeepException keep;
  if (result != nullptr && calls_.WantsOutput(call)) {
    kept.in_output = true;
    calls_.NameEntry(thread, call.name, &kept);
    ValueWalker walker(types_, *this, thread.with_paths());
    walker.Result(kOutput, "output", WhatIsLeft(result, args, count, kept), thread.call);
    calls_.CountUnreadable(thread, walker.failures());
  }
  if (call.mark == RecomputeMark::kBehindOutput) PackRecompute(call.is_recompute, thread.call);
  calls_.EndEntry(thread, call.name, thread.call, kept, /*is_listed=*/true);
  if (result != nullptr) HookGradient(result, call, thread);
  return result;
}

void Recorder::HookGradient(PyObject* result, const capture::ApiCall& call,
                            const ThreadState& thread) {
  if (!calls_.wants_backward()) return;
  PyObject* tensor = FirstTensor(result, types_.tensor);
  if (tensor == nullptr) return;
  const NoOverride plain(types_, hooks_, tensor);
  if (!RequiresGrad(tensor, hooks_.names)) return;
  std::optional<capture::BackwardEntry> entry = calls_.BackwardOf(thread, call);
  if (entry) AttachGradHook(tensor, *this, *std::move(entry));
}

uint32_t Recorder::EnterModule(uint32_t id, PyObject* module, PyObject* args, PyObject* kwargs,
                               uint64_t* token) {
  *token = 0;
  ThreadState& thread = ThisThread();
  if (!calls_.Records(thread)) return 0;
  const InTool in_tool(thread, gate());
  const ModeOff mode_off(hooks_, thread);
  capture::ModuleFrame frame = calls_.OpenModule(id);
  *token = frame.token;
  const uint32_t number = frame.number;
  if (calls_.WantsInput(frame)) {
    if (WorksInPlace(module)) frame.inputs.kept.writes = capture::Writes::kEverything;
    calls_.NameEntry(thread, frame.name, &frame.inputs.kept);
    EntryPacker& out = thread.event;
    out.Clear();
    ValueWalker walker(types_, *this, thread.with_paths());
    const std::vector<PyObject*> items = ItemsOf(args);
    walker.List(kInputArgs, "input", items.data(), std::ssize(items), out);
    walker.Dict(kInputKwargs, "kwargs", kwargs, out);
    calls_.CountUnreadable(thread, walker.failures());
    frame.inputs.bytes.assign(out.bytes().begin(), out.bytes().end());
  }
  if (calls_.wants_buffers()) frame.buffers = BufferReader(types_, hooks_, reader_).Look(module);
  thread.modules.push_back(std::move(frame));
  return number;
}

void Recorder::LeaveModule(uint64_t token, PyObject* module, PyObject* output,
                           PyObject* parameters) {
  ThreadState& thread = ThisThread();
  if (!calls_.IsOpen(thread, token)) return;
  const InTool in_tool(thread, gate());
  const ModeOff mode_off(hooks_, thread);
  auto call = calls_.CloseModule(thread, token);
  if (!call) return;
  const capture::StackInfo stack = call->is_selected ? UseStack() : capture::StackInfo();
  EntryPacker& out = thread.event;
  KeptTensors kept;
  if (calls_.BeginModule(thread, *call, stack, &kept)) {
    ValueWalker walker(types_, *this, thread.with_paths());
    if (output != nullptr && calls_.WantsForwardOutput()) {
      kept.in_output = true;
      walker.Result(kOutput, "output", output, out);
      kept.in_output = false;
    }
    walker.Dict(kParameters, "parameters", parameters, out);
    if (calls_.wants_buffers()) {
      const BufferReader reader(types_, hooks_, reader_);
      const nb::object changed = reader.ChangedSince(call->frame.buffers, module);
      if (changed.is_valid()) walker.Dict(kBuffers, "buffers", changed.ptr(), out);
    }
    calls_.CountUnreadable(thread, walker.failures());
    if (calls_.wants_recompute()) PackRecompute(stack.is_recompute, out);
  }
  calls_.EndEntry(thread, call->frame.name, out, kept, /*is_listed=*/true);
}

PackedPart Recorder::PackBackwardInput(std::string_view name, PyObject* grad_outputs) {
  ThreadState& thread = ThisThread();
  if (!calls_.MayRecordLate(thread)) return {};
  if (!WantsInput(calls_.config().data_mode, CallKind::kBackward)) return {};
  const InTool in_tool(thread, gate());
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  out.Clear();
  PackedPart part;
  calls_.NameEntry(thread, name, &part.kept);
  ValueWalker walker(types_, *this, thread.with_paths());
  walker.Result(kInput, "input", grad_outputs, out);
  calls_.CountUnreadable(thread, walker.failures());
  part.bytes.assign(out.bytes().begin(), out.bytes().end());
  return part;
}

void Recorder::EndBackward(const std::string& name, const std::string* parent, PackedPart results,
                           PyObject* grad_inputs) {
  if (calls_.LeaveBackward(name)) RecordBackward(name, parent, std::move(results), grad_inputs);
}

nanobind::object Recorder::Add(const Autograd& autograd, nanobind::handle first,
                               nanobind::handle second) {
  const InTool in_tool(ThisThread(), gate());
  return autograd.add(first, second);
}

void Recorder::RecordBackward(std::string_view name, const std::string* parent, PackedPart input,
                              PyObject* grad_inputs) {
  ThreadState& thread = ThisThread();
  if (!calls_.MayRecordLate(thread)) return;
  const InTool in_tool(thread, gate());
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  KeptTensors kept;
  calls_.BeginLate(thread, name, parent, std::move(input), &kept);
  if (WantsOutput(calls_.config().data_mode, CallKind::kBackward)) {
    kept.in_output = true;
    calls_.NameEntry(thread, name, &kept);
    ValueWalker walker(types_, *this, thread.with_paths());
    walker.Result(kOutput, "output", grad_inputs, out);
    calls_.CountUnreadable(thread, walker.failures());
  }
  calls_.EndEntry(thread, name, out, kept, /*is_listed=*/parent != nullptr);
}

void Recorder::ReserveParameterGradients(std::string_view entry, PyObject* parameter_names) {
  std::vector<std::string_view> names;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parameter_names); ++i) {
    names.push_back(TextOf(PyList_GET_ITEM(parameter_names, i)));
  }
  calls_.ReserveGradients(ThisThread(), entry, names);
}

void Recorder::RecordParameterGradient(std::string_view entry, std::string_view parameter,
                                       PyObject* grad) {
  ThreadState& thread = ThisThread();
  if (!calls_.RecordsGradients(thread)) return;
  const InTool in_tool(thread, gate());
  const ModeOff mode_off(hooks_, thread);
  const std::string name(entry);
  if (!calls_.SelectsGradients(name)) return;
  EntryPacker& out = thread.event;
  KeptTensors kept;
  calls_.BeginLate(thread, name, nullptr, {}, &kept);
  out.Key(parameter);
  out.BeginList();
  calls_.NameEntry(thread, name, &kept);
  ValueWalker walker(types_, *this, thread.with_paths());
  if (thread.with_paths()) walker.set_path(parameter);
  walker.Value(grad, out);
  out.EndList();
  calls_.CountUnreadable(thread, walker.failures());
  calls_.EndEntry(thread, name, out, kept, /*is_listed=*/false);
}

void Recorder::EndStep() {
  // A parameter saved in every step would otherwise run one more hook per step.
  for (PyObject* handle : saved_handles_) {
    PyObject* done = PyObject_CallMethod(handle, "remove", nullptr);
    if (done == nullptr) DropError();
    Py_XDECREF(done);
    Py_DECREF(handle);
  }
  saved_handles_.clear();
  cache_.Clear();
  ThreadState& thread = ThisThread();
  calls_.EndStep(thread);
  thread.module_calls.clear();
}

}  // namespace plumbline::python
