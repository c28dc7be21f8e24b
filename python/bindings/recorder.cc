#include "recorder.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>

#include "backward_call.h"
#include "callback.h"
#include "formats/dump_json.h"
#include "grad_hook.h"

namespace plumbline::python {
namespace {

using dump_json::kInput;
using dump_json::kInputArgs;
using dump_json::kInputKwargs;
using dump_json::kIsRecompute;
using dump_json::kOutput;
using dump_json::kParameters;

// Set in a forked child: nothing of it may reach the parent's files. DataLoader workers fork.
std::atomic<bool> is_forked_child = false;
void MarkForkedChild() { is_forked_child.store(true, std::memory_order_relaxed); }

// Keeps a raised exception while plumbline's own code runs.
class KeepException {
 public:
  KeepException() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeepException() { PyErr_Restore(type_, value_, traceback_); }
  KeepException(const KeepException&) = delete;
  KeepException& operator=(const KeepException&) = delete;

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

// The backward name of a forward entry or parent: the last ".forward" becomes ".backward".
std::string BackwardName(std::string_view forward) {
  constexpr std::string_view kForward = ".forward";
  const size_t at = forward.rfind(kForward);
  if (at == std::string_view::npos) return std::string(forward);
  std::string name(forward.substr(0, at));
  name += ".backward";
  name += forward.substr(at + kForward.size());
  return name;
}

PyObject* CallInside(ThreadState& thread, PyObject* original, PyObject* const* args, size_t nargsf,
                     PyObject* kwnames) {
  ++thread.in_api;
  PyObject* result = PyObject_Vectorcall(original, args, nargsf, kwnames);
  --thread.in_api;
  return result;
}

}  // namespace

ThreadState& ThisThread() {
  // Recording state belongs to a thread, and the wrapped APIs have no argument to carry it.
  thread_local ThreadState state;
  return state;
}

ThreadState::~ThreadState() {
  // Left by a call that an interrupt cut off. Python objects cannot be released when a thread or
  // the process ends.
  if (!module_calls.empty()) (void)new std::vector<ModuleCall>(std::move(module_calls));
}

ModeOff::ModeOff(const FrameworkHooks& hooks, ThreadState& thread)
    : push_(hooks.push_mode), thread_(thread) {
  if (thread.mode_off++ > 0) return;
  PyObject* answer = PyObject_CallNoArgs(hooks.mode_depth);
  long depth = answer == nullptr ? 0 : PyLong_AsLong(answer);
  Py_XDECREF(answer);
  if (depth > 0 && thread.net != nullptr) {
    PyObject* index = PyLong_FromLong(depth - 1);
    PyObject* top = PyObject_CallOneArg(hooks.mode_at, index);
    if (top == thread.net) {
      mode_ = PyObject_CallNoArgs(hooks.pop_mode);
      --depth;
    }
    Py_XDECREF(top);
    Py_DECREF(index);
  }
  thread.has_other_modes = depth > 0;
  DropError();
}

ModeOff::~ModeOff() {
  if (--thread_.mode_off == 0) thread_.has_other_modes = false;
  if (mode_ == nullptr) return;
  const KeepException keep;
  PyObject* done = PyObject_CallOneArg(push_, mode_);
  if (done == nullptr) DropError();
  Py_XDECREF(done);
  Py_DECREF(mode_);
}

NoOverride::NoOverride(const FrameworkTypes& types, const FrameworkHooks& hooks, PyObject* tensor) {
  PyObject* type = tensor == nullptr ? nullptr : reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  const bool is_plain = type == types.tensor || type == hooks.parameter_type;
  if (is_plain && !ThisThread().has_other_modes) return;
  guard_ = PyObject_CallNoArgs(hooks.no_override);
  PyObject* done = guard_ == nullptr ? nullptr : PyObject_CallMethod(guard_, "__enter__", nullptr);
  if (done == nullptr) DropError();
  Py_XDECREF(done);
}

NoOverride::~NoOverride() {
  if (guard_ == nullptr) return;
  const KeepException keep;
  PyObject* done = PyObject_CallMethod(guard_, "__exit__", "OOO", Py_None, Py_None, Py_None);
  if (done == nullptr) DropError();
  Py_XDECREF(done);
  Py_DECREF(guard_);
}

Recorder::Recorder(std::unique_ptr<capture::Observer> observer, FrameworkTypes types,
                   FrameworkHooks hooks)
    : observer_(std::move(observer)), types_(types), hooks_(hooks), reader_(types.tensor) {
  const Config& config = observer_->config();
  wants_tensors_ = config.task == Task::kTensor;
  wants_digest_ = config.summary_mode == SummaryMode::kMd5;
  wants_xor_ = config.summary_mode == SummaryMode::kXor;
  wants_stacks_ = config.extra_info;
  wants_parents_ = config.extra_info && (config.level == Level::kL0 || config.level == Level::kMix);
  pthread_atfork(nullptr, nullptr, MarkForkedChild);
}

Recorder::~Recorder() {
  for (PyObject* object :
       {types_.tensor, types_.dtype, types_.device, types_.size, types_.memory_format,
        types_.describe, hooks_.to_host, hooks_.describe_tensor, hooks_.mode_depth, hooks_.mode_at,
        hooks_.pop_mode, hooks_.push_mode, hooks_.parameter_type, hooks_.no_override}) {
    Py_XDECREF(object);
  }
}

bool Recorder::Recording(const ThreadState& thread) const {
  return observer_->is_collecting() && thread.in_tool == 0 && !gate_.is_closed() &&
         !is_forked_child.load(std::memory_order_relaxed);
}

void Recorder::NameEntry(ThreadState& thread, std::string_view name) const {
  thread.entry_name = name;
  thread.saves_tensors = wants_tensors_;
  for (const std::string& part : observer_->config().tensor_list) {
    thread.saves_tensors |= name.find(part) != std::string_view::npos;
  }
}

uint32_t Recorder::UseStack(StackInfo* info) {
  if (!wants_stacks_) return 0;
  *info = stacks_.Current();
  if (stacks_written_.insert(info->id).second) {
    observer_->writer().AddStack(info->id, stacks_.FramesOf(info->id));
  }
  return info->id;
}

void Recorder::AppendEntry(std::span<const std::byte> packed) {
  observer_->writer().AddEntry(packed);
}

void Recorder::CountFailures(const ValueWalker& walker) {
  for (int i = 0; i < walker.failures(); ++i) {
    observer_->CountLoss("values_unreadable",
                         ThisThread().entry_name + ": a value that cannot be read");
  }
}

bool Recorder::StillHasPlace(uint64_t epoch, std::string_view name) {
  if (!gate_.is_closed() && observer_->is_step_open() && epoch == observer_->epoch()) return true;
  // Also when the call itself ended the step.
  if (!is_forked_child.load(std::memory_order_relaxed)) {
    observer_->CountLoss("calls_cut_off",
                         fmt::format("{}: the step ended before the call did", name));
  }
  return false;
}

PyObject* Recorder::CallApi(uint32_t api, PyObject* original, PyObject* const* args, size_t nargsf,
                            PyObject* kwnames) {
  ThreadState& thread = ThisThread();
  const bool counts_only = observer_->config().level == Level::kL2 && !thread.in_operator;
  if ((thread.in_api > 0 && !counts_only) || !Recording(thread)) {
    return PyObject_Vectorcall(original, args, nargsf, kwnames);
  }
  const ModeOff mode_off(hooks_, thread);
  if (counts_only) return CallInside(thread, original, args, nargsf, kwnames);
  const uint64_t epoch = observer_->epoch();
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  const DataMode& parts = observer_->config().data_mode;
  const std::string& api_name = observer_->counters().NameOf(api);
  const uint32_t number = observer_->counters().Next(api);
  std::string name = api_name;
  name += '.';
  name += std::to_string(number);
  name += ".forward";
  bool selected = true;
  {
    const InTool in_tool(thread, gate_);
    if (!observer_->selection().selects_all()) selected = observer_->selection().SelectApi(name);
    StackInfo stack;
    if (selected) UseStack(&stack);
    const std::string_view parent =
        thread.modules.empty() ? std::string_view() : std::string_view(thread.modules.back().name);
    thread.call.Begin(name, wants_parents_ ? &parent : nullptr, stack.id);
    if (selected && WantsInput(parts, CallKind::kForward)) {
      NameEntry(thread, name);
      ValueWalker walker(types_, *this, thread.saves_tensors);
      walker.List(kInputArgs, "input", args, count, thread.call);
      walker.Keywords(kInputKwargs, kwnames, args + count, thread.call);
      CountFailures(walker);
    }
    if (selected && wants_stacks_ && WantsDirection(parts, CallKind::kForward)) {
      thread.call.Key(kIsRecompute);
      thread.call.Bool(stack.is_recompute);
    }
  }
  PyObject* result = CallInside(thread, original, args, nargsf, kwnames);
  if (!StillHasPlace(epoch, name)) return result;
  const InTool in_tool(thread, gate_);
  if (result == nullptr) {
    const KeepException keep;
    AppendEntry(thread.call.Finish());
    return nullptr;
  }
  if (selected && WantsOutput(parts, CallKind::kForward)) {
    NameEntry(thread, name);
    ValueWalker walker(types_, *this, thread.saves_tensors);
    walker.Result(kOutput, "output", result, thread.call);
    CountFailures(walker);
  }
  AppendEntry(thread.call.Finish());
  if (WantsDirection(parts, CallKind::kBackward)) HookGradient(result, api_name, number, thread);
  return result;
}

void Recorder::HookGradient(PyObject* result, std::string_view api_name, uint32_t number,
                            const ThreadState& thread) {
  PyObject* tensor = FirstTensor(result, types_.tensor);
  if (tensor == nullptr) return;
  const NoOverride plain(types_, hooks_, tensor);
  if (!RequiresGrad(tensor)) return;
  std::string name(api_name);
  name += '.';
  name += std::to_string(number);
  name += ".backward";
  if (!observer_->selection().selects_all() && !observer_->selection().SelectApi(name)) return;
  std::string parent;
  if (!thread.modules.empty()) parent = BackwardName(thread.modules.back().name);
  AttachGradHook(tensor, *this, std::move(name), std::move(parent), wants_parents_);
}

uint32_t Recorder::EnterModule(uint32_t module, PyObject* args, PyObject* kwargs, uint64_t* token) {
  *token = 0;
  ThreadState& thread = ThisThread();
  if (!Recording(thread)) return 0;
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  const uint32_t number = observer_->counters().Next(module);
  ModuleFrame frame;
  frame.name = observer_->counters().NameOf(module);
  frame.name += ".forward.";
  frame.name += std::to_string(number);
  frame.token = *token = next_token_++;
  frame.epoch = observer_->epoch();
  if (!observer_->selection().selects_all()) observer_->selection().EnterModule(frame.name);
  if (WantsInput(observer_->config().data_mode, CallKind::kForward) &&
      observer_->selection().MaySelectModule(frame.name)) {
    NameEntry(thread, frame.name);
    EntryPacker& out = thread.event;
    out.Clear();
    ValueWalker walker(types_, *this, thread.saves_tensors);
    walker.List(kInputArgs, "input", &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), out);
    walker.Dict(kInputKwargs, "kwargs", kwargs, out);
    CountFailures(walker);
    frame.inputs.assign(out.bytes().begin(), out.bytes().end());
  }
  thread.modules.push_back(std::move(frame));
  return number;
}

void Recorder::LeaveModule(uint64_t token, PyObject* output, PyObject* parameters) {
  ThreadState& thread = ThisThread();
  bool known = false;
  for (const ModuleFrame& frame : thread.modules) known |= frame.token == token;
  if (token == 0 || !known) return;
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  Selection& selection = observer_->selection();
  while (thread.modules.back().token != token) {
    if (!selection.selects_all()) (void)selection.LeaveModule(thread.modules.back().name);
    thread.modules.pop_back();
  }
  const ModuleFrame frame = std::move(thread.modules.back());
  thread.modules.pop_back();
  const bool selected = selection.selects_all() || selection.LeaveModule(frame.name);
  if (is_forked_child.load(std::memory_order_relaxed)) return;
  if (!StillHasPlace(frame.epoch, frame.name)) return;
  const DataMode& parts = observer_->config().data_mode;
  StackInfo stack;
  if (selected) UseStack(&stack);
  const std::string_view parent =
      thread.modules.empty() ? std::string_view() : std::string_view(thread.modules.back().name);
  EntryPacker& out = thread.event;
  out.Begin(frame.name, wants_parents_ ? &parent : nullptr, stack.id);
  if (selected && WantsDirection(parts, CallKind::kForward)) {
    out.Raw(frame.inputs);
    NameEntry(thread, frame.name);
    ValueWalker walker(types_, *this, thread.saves_tensors);
    if (output != nullptr && WantsOutput(parts, CallKind::kForward)) {
      walker.Result(kOutput, "output", output, out);
    }
    walker.Dict(kParameters, "parameters", parameters, out);
    CountFailures(walker);
    if (wants_stacks_) {  // without walking the stack it is not known
      out.Key(kIsRecompute);
      out.Bool(stack.is_recompute);
    }
  }
  AppendEntry(out.Finish());
}

std::string Recorder::ParentOfBackward() const {
  const auto& modules = ThisThread().modules;
  return modules.size() < 2 ? std::string() : BackwardName(modules[modules.size() - 2].name);
}

std::vector<std::byte> Recorder::PackBackwardInput(std::string_view name, PyObject* grad_outputs) {
  ThreadState& thread = ThisThread();
  if (!MayRecordBackward(thread)) return {};
  if (!WantsInput(observer_->config().data_mode, CallKind::kBackward)) return {};
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  out.Clear();
  NameEntry(thread, name);
  ValueWalker walker(types_, *this, thread.saves_tensors);
  walker.Result(kInput, "input", grad_outputs, out);
  CountFailures(walker);
  return {out.bytes().begin(), out.bytes().end()};
}

bool Recorder::MayRecordBackward(const ThreadState& thread) const {
  return thread.in_tool == 0 && !gate_.is_closed() && observer_->is_step_open() &&
         !is_forked_child.load(std::memory_order_relaxed);
}

void Recorder::RecordBackward(std::string_view name, const std::string* parent,
                              std::span<const std::byte> packed_input, PyObject* grad_inputs) {
  ThreadState& thread = ThisThread();
  if (!MayRecordBackward(thread)) return;
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  const std::string_view parent_name = parent == nullptr ? std::string_view() : *parent;
  out.Begin(name, parent == nullptr ? nullptr : &parent_name, 0);
  out.Raw(packed_input);
  if (WantsOutput(observer_->config().data_mode, CallKind::kBackward)) {
    NameEntry(thread, name);
    ValueWalker walker(types_, *this, thread.saves_tensors);
    walker.Result(kOutput, "output", grad_inputs, out);
    CountFailures(walker);
  }
  AppendEntry(out.Finish());
}

void Recorder::ReserveParameterGradients(std::string_view entry, PyObject* parameter_names) {
  ThreadState& thread = ThisThread();
  if (gate_.is_closed() || !observer_->is_step_open()) return;
  if (observer_->config().task == Task::kStructure) return;
  EntryPacker& out = thread.event;
  out.Begin(entry, nullptr, 0);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parameter_names); ++i) {
    out.Key(TextOf(PyList_GET_ITEM(parameter_names, i)));
    out.BeginList();
    out.Null();
    out.EndList();
  }
  AppendEntry(out.Finish());
}

void Recorder::RecordParameterGradient(std::string_view entry, std::string_view parameter,
                                       PyObject* grad) {
  ThreadState& thread = ThisThread();
  if (!Recording(thread) || observer_->config().task == Task::kStructure) return;
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  const std::string name(entry);
  EntryPacker& out = thread.event;
  out.Begin(name, nullptr, 0);
  out.Key(parameter);
  out.BeginList();
  NameEntry(thread, name);
  ValueWalker walker(types_, *this, thread.saves_tensors);
  if (thread.saves_tensors) walker.set_path(parameter);
  walker.Value(grad, out);
  out.EndList();
  CountFailures(walker);
  AppendEntry(out.Finish());
}

void Recorder::EnterBackward(std::string_view name) {
  Selection& selection = observer_->selection();
  if (!selection.selects_all()) selection.EnterModule(name);
}

bool Recorder::LeaveBackward(std::string_view name) {
  Selection& selection = observer_->selection();
  return selection.selects_all() || selection.LeaveModule(name);
}

void Recorder::PushRegion(std::string_view name) {
  ThreadState& thread = ThisThread();
  if (!Recording(thread)) return;
  if (regions_written_.insert(std::string(name)).second) {
    const std::string_view root;
    thread.event.Begin(name, &root, 0);
    AppendEntry(thread.event.Finish());
  }
  ModuleFrame frame;
  frame.name = name;
  frame.token = next_token_++;
  thread.modules.push_back(std::move(frame));
}

void Recorder::PopRegion(std::string_view name) {
  auto& modules = ThisThread().modules;
  for (size_t i = modules.size(); i-- > 0;) {
    if (modules[i].name != name) continue;
    modules.resize(i);
    return;
  }
}

void Recorder::ForgetTensors() { cache_.Clear(); }

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
  stacks_written_.clear();
  regions_written_.clear();
  ThisThread().modules.clear();
  ThisThread().module_calls.clear();
}

}  // namespace plumbline::python
