#include "capture/call_recorder.h"

#include <fmt/format.h>
#include <pthread.h>

namespace plumbline::capture {
namespace {

std::string ApiEntryName(std::string_view api, uint32_t number, std::string_view direction) {
  std::string name(api);
  name += '.';
  name += std::to_string(number);
  name += direction;
  return name;
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

}  // namespace

CallRecorder::CallRecorder(std::unique_ptr<Observer> observer, bool tells_recompute,
                           const ProgramThreads& threads, KeptTensorPacker& packer)
    : observer_(std::move(observer)), threads_(threads), packer_(packer) {
  const Config& config = observer_->config();
  if (config.task == Task::kOverflowCheck) search_ = Search::kNonFinite;
  if (config.task == Task::kNanCheck) search_ = Search::kNanFlag;
  if (!config.bench_path.empty()) search_ = Search::kDifference;
  wants_stacks_ = config.extra_info;
  // Without walking the stack it is not known.
  wants_recompute_ = wants_stacks_ && tells_recompute;
  wants_parents_ = config.extra_info && (config.level == Level::kL0 || config.level == Level::kMix);
  pthread_atfork(nullptr, nullptr, [] { is_forked_child_.store(true, std::memory_order_relaxed); });
}

// What a search for NaN keeps and finds is that of upstream's, which looks at no buffer.
bool CallRecorder::wants_buffers() const {
  return search_ == Search::kNothing && config().task != Task::kStructure &&
         plumbline::WantsOutput(config().data_mode, CallKind::kForward);
}

bool CallRecorder::MayRecordLate(const ThreadState& thread) const {
  return thread.in_tool == 0 && !gate_.is_closed() && observer_->is_step_open() &&
         !observer_->is_done() && !is_forked_child_.load(std::memory_order_relaxed);
}

bool CallRecorder::StillHasPlace(uint64_t epoch, std::string_view name) {
  if (observer_->is_done()) return false;
  if (!gate_.is_closed() && observer_->is_step_open() && epoch == observer_->epoch()) return true;
  // Also when the call itself ended the step.
  if (!is_forked_child_.load(std::memory_order_relaxed)) {
    observer_->CountLoss("calls_cut_off",
                         fmt::format("{}: the step ended before the call did", name));
  }
  return false;
}

ApiCall CallRecorder::NameApi(uint32_t api) {
  ApiCall call;
  call.epoch = observer_->epoch();
  call.api = observer_->counters().NameOf(api);
  call.number = observer_->counters().Next(api);
  call.name = ApiEntryName(call.api, call.number, ".forward");
  return call;
}

void CallRecorder::Select(ApiCall& call) {
  if (!observer_->selection().selects_all()) {
    call.is_selected = observer_->selection().SelectApi(call.name);
  }
}

void CallRecorder::BeginApi(ThreadState& thread, ApiCall& call, const StackInfo& stack) const {
  const std::string_view parent = thread.module_name();
  call.is_recompute = stack.is_recompute;
  if (call.is_selected && wants_recompute_ &&
      WantsDirection(config().data_mode, CallKind::kForward)) {
    // Release 1.2.2 writes it behind the output for this task.
    call.mark =
        search_ == Search::kNonFinite ? RecomputeMark::kBehindOutput : RecomputeMark::kBeforeOutput;
  }
  thread.call.Begin(call.name, wants_parents_ ? &parent : nullptr, stack.id);
  thread.call_kept.Clear();
  thread.call_kept.head = thread.call.size();
}

bool CallRecorder::WantsInput(const ApiCall& call) const {
  return call.is_selected && plumbline::WantsInput(config().data_mode, CallKind::kForward);
}

bool CallRecorder::WantsOutput(const ApiCall& call) const {
  return call.is_selected && plumbline::WantsOutput(config().data_mode, CallKind::kForward);
}

std::optional<BackwardEntry> CallRecorder::BackwardOf(const ThreadState& thread,
                                                      const ApiCall& call) const {
  BackwardEntry entry;
  entry.name = ApiEntryName(call.api, call.number, ".backward");
  if (!observer_->selection().MaySelectApi(entry.name)) return std::nullopt;
  if (!thread.modules.empty()) entry.parent = BackwardName(thread.module_name());
  entry.has_parent = wants_parents_;
  entry.epoch = observer_->epoch();
  return entry;
}

bool CallRecorder::SelectsBackward(const BackwardEntry& entry) {
  if (entry.epoch != observer_->epoch()) return false;
  Selection& selection = observer_->selection();
  return selection.selects_all() || selection.SelectApi(entry.name);
}

ModuleFrame CallRecorder::OpenModule(uint32_t id) {
  const uint32_t number = observer_->counters().Next(id);
  ModuleFrame frame;
  frame.name = observer_->counters().NameOf(id);
  frame.name += ".forward.";
  frame.name += std::to_string(number);
  frame.number = number;
  frame.token = next_token_++;
  frame.epoch = observer_->epoch();
  if (!observer_->selection().selects_all()) observer_->selection().EnterModule(frame.name);
  return frame;
}

bool CallRecorder::WantsInput(const ModuleFrame& frame) const {
  return plumbline::WantsInput(config().data_mode, CallKind::kForward) &&
         observer_->selection().MaySelectModule(frame.name);
}

bool CallRecorder::IsOpen(const ThreadState& thread, uint64_t token) {
  bool known = false;
  for (const ModuleFrame& frame : thread.modules) known |= frame.token == token;
  return token != 0 && known;
}

std::optional<CallRecorder::ClosedModule> CallRecorder::CloseModule(ThreadState& thread,
                                                                    uint64_t token) {
  Selection& selection = observer_->selection();
  while (thread.modules.back().token != token) {
    if (!selection.selects_all()) (void)selection.LeaveModule(thread.modules.back().name);
    thread.modules.pop_back();
  }
  ClosedModule module;
  module.frame = std::move(thread.modules.back());
  thread.modules.pop_back();
  module.is_selected = selection.selects_all() || selection.LeaveModule(module.frame.name);
  if (is_forked_child_.load(std::memory_order_relaxed)) return std::nullopt;
  if (!StillHasPlace(module.frame.epoch, module.frame.name)) return std::nullopt;
  return module;
}

bool CallRecorder::BeginModule(ThreadState& thread, ClosedModule& module, const StackInfo& stack,
                               KeptTensors* kept) const {
  const std::string_view parent = thread.module_name();
  EntryPacker& out = thread.event;
  out.Begin(module.frame.name, wants_parents_ ? &parent : nullptr, stack.id);
  kept->head = out.size();
  if (!module.is_selected || !WantsDirection(config().data_mode, CallKind::kForward)) return false;
  kept->Append(std::move(module.frame.inputs.kept), out.size());
  out.Raw(module.frame.inputs.bytes);
  NameEntry(thread, module.frame.name, kept);
  return true;
}

std::string CallRecorder::ParentOfBackward(const ThreadState& thread) {
  const auto& modules = thread.modules;
  return modules.size() < 2 ? std::string() : BackwardName(modules[modules.size() - 2].name);
}

void CallRecorder::EnterBackward(std::string_view name) {
  Selection& selection = observer_->selection();
  if (!selection.selects_all()) selection.EnterModule(name);
}

bool CallRecorder::LeaveBackward(std::string_view name) {
  Selection& selection = observer_->selection();
  if (selection.selects_all()) return true;
  if (!selection.LeaveModule(name)) return false;
  const std::string_view module = name.substr(0, name.rfind(".backward."));
  gradients_wanted_.insert(std::string(module) + ".parameters_grad");
  return true;
}

void CallRecorder::BeginLate(ThreadState& thread, std::string_view name, const std::string* parent,
                             PackedPart before, KeptTensors* kept) {
  EntryPacker& out = thread.event;
  const std::string_view parent_name = parent == nullptr ? std::string_view() : *parent;
  out.Begin(name, parent == nullptr ? nullptr : &parent_name, before.stack);
  kept->head = out.size();
  kept->Append(std::move(before.kept), out.size());
  out.Raw(before.bytes);
}

void CallRecorder::ReserveGradients(ThreadState& thread, std::string_view entry,
                                    std::span<const std::string_view> parameters) {
  if (gate_.is_closed() || !observer_->is_step_open() || observer_->is_done()) return;
  if (config().task == Task::kStructure) return;
  EntryPacker& out = thread.event;
  out.Begin(entry, nullptr, 0);
  for (const std::string_view parameter : parameters) {
    out.Key(parameter);
    out.BeginList();
    out.Null();
    out.EndList();
  }
  AppendEntry(out.Finish());
}

bool CallRecorder::RecordsGradients(const ThreadState& thread) const {
  return Records(thread) && config().task != Task::kStructure;
}

bool CallRecorder::SelectsGradients(const std::string& entry) {
  const Selection& selection = observer_->selection();
  if (selection.selects_all() || gradients_wanted_.contains(entry)) return true;
  if (!selection.SelectGradients(std::string_view(entry).substr(0, entry.rfind('.')))) {
    observer_->writer().RemoveEntry(entry);  // its place was reserved
    return false;
  }
  gradients_wanted_.insert(entry);
  return true;
}

void CallRecorder::PushRegion(ThreadState& thread, std::string_view name) {
  if (!Records(thread)) return;
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

void CallRecorder::PopRegion(ThreadState& thread, std::string_view name) {
  auto& modules = thread.modules;
  for (size_t i = modules.size(); i-- > 0;) {
    if (modules[i].name != name) continue;
    modules.resize(i);
    return;
  }
}

void CallRecorder::UseStack(uint32_t id, std::span<const std::string> frames) {
  if (stacks_written_.insert(id).second) observer_->writer().AddStack(id, frames);
}

void CallRecorder::NameEntry(ThreadState& thread, std::string_view name, KeptTensors* kept) const {
  thread.entry_name = name;
  const bool listed = observer_->selection().SavesTensors(name);
  const bool wants_tensors = config().task == Task::kTensor;
  thread.kept = search_ == Search::kNothing ? nullptr : kept;
  thread.keeps_tensors = thread.kept != nullptr && (search_ != Search::kNanFlag || listed);
  thread.saves_tensors = search_ == Search::kNothing && (wants_tensors || listed);
}

void CallRecorder::CountUnreadable(const ThreadState& thread, int values) {
  for (int i = 0; i < values; ++i) {
    observer_->CountLoss("values_unreadable", thread.entry_name + ": a value that cannot be read");
  }
}

void CallRecorder::EndStep(ThreadState& thread) {
  stacks_written_.clear();
  regions_written_.clear();
  gradients_wanted_.clear();
  thread.modules.clear();
}

}  // namespace plumbline::capture
