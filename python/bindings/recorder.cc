#include "recorder.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>

#include "backward_call.h"
#include "callback.h"
#include "errors.h"
#include "formats/dump_json.h"
#include "grad_hook.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using dump_json::kBuffers;
using dump_json::kInput;
using dump_json::kInputArgs;
using dump_json::kInputKwargs;
using dump_json::kIsRecompute;
using dump_json::kOutput;
using dump_json::kParameters;

// Set in a forked child: nothing of it may reach the parent's files. DataLoader workers fork.
std::atomic<bool> is_forked_child = false;
void MarkForkedChild() { is_forked_child.store(true, std::memory_order_relaxed); }

std::string ApiEntryName(std::string_view api, uint32_t number, std::string_view direction) {
  std::string name(api);
  name += '.';
  name += std::to_string(number);
  name += direction;
  return name;
}

void PackRecompute(bool is_recompute, EntryPacker& out) {
  out.Key(kIsRecompute);
  out.Bool(is_recompute);
}

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

// An attribute `inplace` of the module itself, as ReLU and Dropout have.
bool WorksInPlace(PyObject* module) {
  static PyObject* const dict_name = PyUnicode_InternFromString("__dict__");
  static PyObject* const name = PyUnicode_InternFromString("inplace");
  const nb::object attributes = nb::steal(CheckedPython(PyObject_GetAttr(module, dict_name)));
  return PyDict_Check(attributes.ptr()) && PyDict_GetItem(attributes.ptr(), name) == Py_True;
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
  // Tensors they keep are leaked likewise (KeptTensors).
}

Recorder::Recorder(std::unique_ptr<capture::Observer> observer, FrameworkTypes types,
                   FrameworkHooks hooks)
    : observer_(std::move(observer)), types_(std::move(types)), hooks_(hooks), reader_(types_) {
  const Config& config = observer_->config();
  if (config.task == Task::kOverflowCheck) search_ = Search::kNonFinite;
  if (config.task == Task::kNanCheck) search_ = Search::kNanFlag;
  if (!config.bench_path.empty()) search_ = Search::kDifference;
  wants_tensors_ = config.task == Task::kTensor;
  wants_digest_ = config.summary_mode == SummaryMode::kMd5;
  wants_xor_ = config.summary_mode == SummaryMode::kXor;
  wants_stacks_ = config.extra_info;
  // Without walking the stack it is not known.
  wants_recompute_ = wants_stacks_ && types_.texts.tells_grad;
  wants_parents_ = config.extra_info && (config.level == Level::kL0 || config.level == Level::kMix);
  pthread_atfork(nullptr, nullptr, MarkForkedChild);
}

Recorder::~Recorder() {
  Release(types_);
  Release(hooks_);
}

bool Recorder::Recording(const ThreadState& thread) const {
  return observer_->is_collecting() && thread.in_tool == 0 && !gate_.is_closed() &&
         !is_forked_child.load(std::memory_order_relaxed);
}

void Recorder::NameEntry(ThreadState& thread, std::string_view name, KeptTensors* kept) const {
  thread.entry_name = name;
  bool listed = false;
  for (const std::string& part : observer_->config().tensor_list) {
    listed |= name.find(part) != std::string_view::npos;
  }
  thread.kept = search_ == Search::kNothing ? nullptr : kept;
  thread.keeps_tensors = thread.kept != nullptr && (search_ != Search::kNanFlag || listed);
  thread.saves_tensors = search_ == Search::kNothing && (wants_tensors_ || listed);
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
  if (observer_->is_done()) return false;
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
  const std::string name = ApiEntryName(api_name, number, ".forward");
  bool selected = true;
  bool tells_recompute = false, is_recompute = false;
  KeptTensors& kept = thread.call_kept;
  {
    const InTool in_tool(thread, gate_);
    if (!observer_->selection().selects_all()) selected = observer_->selection().SelectApi(name);
    tells_recompute = selected && wants_recompute_ && WantsDirection(parts, CallKind::kForward);
    StackInfo stack;
    if (selected) UseStack(&stack);
    const std::string_view parent =
        thread.modules.empty() ? std::string_view() : std::string_view(thread.modules.back().name);
    is_recompute = stack.is_recompute;
    thread.call.Begin(name, wants_parents_ ? &parent : nullptr, stack.id);
    kept.Clear();
    kept.head = thread.call.size();
    if (search_ != Search::kNothing) kept.writes = WritesOf(api_name, args, count, kwnames);
    if (selected && WantsInput(parts, CallKind::kForward)) {
      NameEntry(thread, name, &kept);
      ValueWalker walker(types_, *this, thread.with_paths());
      walker.List(kInputArgs, "input", args, count, thread.call);
      walker.Keywords(kInputKwargs, kwnames, args + count, thread.call);
      CountFailures(walker);
    }
    if (tells_recompute && search_ != Search::kNonFinite) {
      PackRecompute(is_recompute, thread.call);
    }
  }
  PyObject* result = CallInside(thread, original, args, nargsf, kwnames);
  if (!StillHasPlace(epoch, name)) return result;
  const InTool in_tool(thread, gate_);
  const KeepException keep;
  if (result != nullptr && selected && WantsOutput(parts, CallKind::kForward)) {
    kept.in_output = true;
    NameEntry(thread, name, &kept);
    ValueWalker walker(types_, *this, thread.with_paths());
    walker.Result(kOutput, "output", WhatIsLeft(result, args, count, kept), thread.call);
    CountFailures(walker);
  }
  // Release 1.2.2 writes it behind the output for this task.
  if (tells_recompute && search_ == Search::kNonFinite) PackRecompute(is_recompute, thread.call);
  EndEntry(name, thread.call, kept, /*is_listed=*/true);
  if (result == nullptr) return nullptr;
  if (WantsDirection(parts, CallKind::kBackward)) HookGradient(result, api_name, number, thread);
  return result;
}

void Recorder::HookGradient(PyObject* result, std::string_view api_name, uint32_t number,
                            const ThreadState& thread) {
  PyObject* tensor = FirstTensor(result, types_.tensor);
  if (tensor == nullptr) return;
  const NoOverride plain(types_, hooks_, tensor);
  if (!RequiresGrad(tensor, hooks_.names)) return;
  std::string name = ApiEntryName(api_name, number, ".backward");
  if (!observer_->selection().MaySelectApi(name)) return;
  std::string parent;
  if (!thread.modules.empty()) parent = BackwardName(thread.modules.back().name);
  AttachGradHook(tensor, *this, std::move(name), std::move(parent), wants_parents_);
}

uint32_t Recorder::EnterModule(uint32_t id, PyObject* module, PyObject* args, PyObject* kwargs,
                               uint64_t* token) {
  *token = 0;
  ThreadState& thread = ThisThread();
  if (!Recording(thread)) return 0;
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  const uint32_t number = observer_->counters().Next(id);
  ModuleFrame frame;
  frame.name = observer_->counters().NameOf(id);
  frame.name += ".forward.";
  frame.name += std::to_string(number);
  frame.token = *token = next_token_++;
  frame.epoch = observer_->epoch();
  if (!observer_->selection().selects_all()) observer_->selection().EnterModule(frame.name);
  if (WantsInput(observer_->config().data_mode, CallKind::kForward) &&
      observer_->selection().MaySelectModule(frame.name)) {
    if (WorksInPlace(module)) frame.inputs.kept.writes = Writes::kEverything;
    NameEntry(thread, frame.name, &frame.inputs.kept);
    EntryPacker& out = thread.event;
    out.Clear();
    ValueWalker walker(types_, *this, thread.with_paths());
    walker.List(kInputArgs, "input", &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), out);
    walker.Dict(kInputKwargs, "kwargs", kwargs, out);
    CountFailures(walker);
    frame.inputs.bytes.assign(out.bytes().begin(), out.bytes().end());
  }
  if (WantsBuffers()) frame.buffers = BufferReader(types_, hooks_, reader_).Look(module);
  thread.modules.push_back(std::move(frame));
  return number;
}

// What a search for NaN keeps and finds is that of upstream's, which looks at no buffer.
bool Recorder::WantsBuffers() const {
  const Config& config = observer_->config();
  return search_ == Search::kNothing && config.task != Task::kStructure &&
         WantsOutput(config.data_mode, CallKind::kForward);
}

void Recorder::LeaveModule(uint64_t token, PyObject* module, PyObject* output,
                           PyObject* parameters) {
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
  ModuleFrame frame = std::move(thread.modules.back());
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
  KeptTensors kept;
  kept.head = out.size();
  if (selected && WantsDirection(parts, CallKind::kForward)) {
    kept.Append(std::move(frame.inputs.kept), out.size());
    out.Raw(frame.inputs.bytes);
    NameEntry(thread, frame.name, &kept);
    ValueWalker walker(types_, *this, thread.with_paths());
    if (output != nullptr && WantsOutput(parts, CallKind::kForward)) {
      kept.in_output = true;
      walker.Result(kOutput, "output", output, out);
      kept.in_output = false;
    }
    walker.Dict(kParameters, "parameters", parameters, out);
    if (WantsBuffers()) {
      const BufferReader reader(types_, hooks_, reader_);
      const nb::dict changed = reader.ChangedSince(frame.buffers, module);
      if (changed.size() > 0) walker.Dict(kBuffers, "buffers", changed.ptr(), out);
    }
    CountFailures(walker);
    if (wants_recompute_) PackRecompute(stack.is_recompute, out);
  }
  EndEntry(frame.name, out, kept, /*is_listed=*/true);
}

std::string Recorder::ParentOfBackward() const {
  const auto& modules = ThisThread().modules;
  return modules.size() < 2 ? std::string() : BackwardName(modules[modules.size() - 2].name);
}

PackedPart Recorder::PackBackwardInput(std::string_view name, PyObject* grad_outputs) {
  ThreadState& thread = ThisThread();
  if (!MayRecordBackward(thread)) return {};
  if (!WantsInput(observer_->config().data_mode, CallKind::kBackward)) return {};
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  out.Clear();
  PackedPart part;
  NameEntry(thread, name, &part.kept);
  ValueWalker walker(types_, *this, thread.with_paths());
  walker.Result(kInput, "input", grad_outputs, out);
  CountFailures(walker);
  part.bytes.assign(out.bytes().begin(), out.bytes().end());
  return part;
}

bool Recorder::MayRecordBackward(const ThreadState& thread) const {
  return thread.in_tool == 0 && !gate_.is_closed() && observer_->is_step_open() &&
         !observer_->is_done() && !is_forked_child.load(std::memory_order_relaxed);
}

void Recorder::RecordBackward(std::string_view name, const std::string* parent, PackedPart input,
                              PyObject* grad_inputs) {
  ThreadState& thread = ThisThread();
  if (!MayRecordBackward(thread)) return;
  const InTool in_tool(thread, gate_);
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  const std::string_view parent_name = parent == nullptr ? std::string_view() : *parent;
  out.Begin(name, parent == nullptr ? nullptr : &parent_name, 0);
  KeptTensors kept;
  kept.head = out.size();
  kept.Append(std::move(input.kept), out.size());
  out.Raw(input.bytes);
  if (WantsOutput(observer_->config().data_mode, CallKind::kBackward)) {
    kept.in_output = true;
    NameEntry(thread, name, &kept);
    ValueWalker walker(types_, *this, thread.with_paths());
    walker.Result(kOutput, "output", grad_inputs, out);
    CountFailures(walker);
  }
  EndEntry(name, out, kept, /*is_listed=*/parent != nullptr);
}

void Recorder::ReserveParameterGradients(std::string_view entry, PyObject* parameter_names) {
  ThreadState& thread = ThisThread();
  if (gate_.is_closed() || !observer_->is_step_open() || observer_->is_done()) return;
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
  if (!SelectsGradients(name)) return;
  EntryPacker& out = thread.event;
  out.Begin(name, nullptr, 0);
  KeptTensors kept;
  kept.head = out.size();
  out.Key(parameter);
  out.BeginList();
  NameEntry(thread, name, &kept);
  ValueWalker walker(types_, *this, thread.with_paths());
  if (thread.with_paths()) walker.set_path(parameter);
  walker.Value(grad, out);
  out.EndList();
  CountFailures(walker);
  EndEntry(name, out, kept, /*is_listed=*/false);
}

void Recorder::EnterBackward(std::string_view name) {
  Selection& selection = observer_->selection();
  if (!selection.selects_all()) selection.EnterModule(name);
}

bool Recorder::LeaveBackward(std::string_view name) {
  Selection& selection = observer_->selection();
  if (selection.selects_all()) return true;
  if (!selection.LeaveModule(name)) return false;
  const std::string_view module = name.substr(0, name.rfind(".backward."));
  gradients_wanted_.insert(std::string(module) + ".parameters_grad");
  return true;
}

bool Recorder::SelectsBackward(std::string_view name) {
  Selection& selection = observer_->selection();
  return selection.selects_all() || selection.SelectApi(name);
}

bool Recorder::SelectsGradients(const std::string& entry) {
  const Selection& selection = observer_->selection();
  if (selection.selects_all() || gradients_wanted_.contains(entry)) return true;
  if (!selection.SelectGradients(std::string_view(entry).substr(0, entry.rfind('.')))) {
    observer_->writer().RemoveEntry(entry);  // its place was reserved
    return false;
  }
  gradients_wanted_.insert(entry);
  return true;
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
  gradients_wanted_.clear();
  ThisThread().modules.clear();
  ThisThread().module_calls.clear();
}

}  // namespace plumbline::python
