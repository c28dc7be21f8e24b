#include "capture/engine_recorder.h"

#include <fmt/format.h>

#include <utility>

#include "base/process/log.h"
#include "record/call_name.h"

namespace plumbline::capture {
namespace {

constexpr std::string_view kFrameworks[] = {"pytorch", "mindspore", "mindtorch"};

ProgramThreads EngineThreads() {
  return {[](const std::function<void()>& work) { work(); }, [] { return kernels::Team{}; }};
}

Status CheckFramework(const std::string& framework) {
  for (const std::string_view known : kFrameworks) {
    if (framework == known) return {};
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("framework: is \"{}\" (expected pytorch, mindspore or mindtorch)",
                           framework));
}

// What only the hooks of a framework can do.
Status CheckTask(const Config& config) {
  const Task task = config.task;
  if (task != Task::kStatistics && task != Task::kTensor && task != Task::kStructure) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("task: {} needs the hooks of a framework (expected statistics, tensor "
                             "or structure)",
                             TaskName(task)));
  }
  if (config.level == Level::kL2 || config.level == Level::kDebug) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("level: {} needs the hooks of a framework (expected L0, L1 or mix)",
                             LevelName(config.level)));
  }
  if (!config.bench_path.empty() || config.online.is_on) {
    return Error(ErrorCode::kUnsupported,
                 "config.json: bench_path and online_run_ut need the hooks of a framework");
  }
  return {};
}

bool IsModule(std::string_view name) {
  return name.starts_with("Module.") || name.starts_with("Cell.");
}

// Whether dump.json can tell the parts of a name.
Status CheckName(std::string_view name, bool is_module) {
  const std::string entry = std::string(name) + (is_module ? ".forward.0" : ".0.forward");
  const std::optional<CallName> parsed = ParseCallName(entry);
  const bool is_known = parsed && (is_module ? parsed->form == CallName::Form::kModule &&
                                                   !parsed->class_name.empty()
                                             : parsed->form == CallName::Form::kApi);
  if (is_known) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("call \"{}\": is no name of a call (expected a kind and a name, as "
                           "Functional.linear, or Module.<path>.<class>)",
                           name));
}

}  // namespace

Result<std::unique_ptr<EngineRecorder>> EngineRecorder::Create(const EngineOptions& options) {
  PL_TRY(CheckFramework(options.framework));
  PL_TRY_ASSIGN(Config config, LoadConfig(options.config_path, options.overrides));
  PL_TRY(CheckDumpPath(config.dump_path));
  PL_TRY(CheckTask(config));
  for (const std::string& warning : config.warnings) LogWarning(warning);
  PL_TRY_ASSIGN(std::unique_ptr<Observer> observer,
                Observer::Create(std::move(config), options.framework));
  return std::unique_ptr<EngineRecorder>(
      new EngineRecorder(std::move(observer), options));
}

EngineRecorder::EngineRecorder(std::unique_ptr<Observer> observer, const EngineOptions& options)
    : keys_(options.keys),
      texts_(TextsOf(options.framework)),
      rank_(options.rank),
      calls_(std::move(observer), /*tells_recompute=*/false, EngineThreads(), *this),
      tensors_(calls_, texts_),
      cuts_(calls_.config().slices, calls_.config().request_id) {}

Result<bool> EngineRecorder::BeginStep() {
  const std::lock_guard lock(mutex_);
  if (is_step_begun_) {
    return Error(ErrorCode::kInvalidArgument, "begin step: a step is open. End it first");
  }
  is_step_begun_ = true;
  Observer& observer = calls_.observer();
  const Config& config = calls_.config();
  const int step = observer.step();
  if (observer.Start(rank_) == StartOutcome::kCollecting) return true;
  if (!WantsStep(config, step) || !WantsRank(config, rank_)) return false;
  return Error(ErrorCode::kIo, fmt::format("{}: step {} cannot be written there and is not recorded "
                                           "(the log says why)",
                                           config.dump_path, step));
}

void EngineRecorder::CloseStep() {
  ThreadState nobody;
  calls_.EndStep(nobody);
  calls_.observer().Step();
  is_step_begun_ = false;
}

Status EngineRecorder::EndStep() {
  const std::lock_guard lock(mutex_);
  if (!is_step_begun_) return Error(ErrorCode::kInvalidArgument, "end step: no step is open");
  CloseStep();
  return {};
}

void EngineRecorder::Finish() {
  const std::lock_guard lock(mutex_);
  if (is_step_begun_) CloseStep();
  calls_.observer().Close();
}

std::string EngineRecorder::directory() {
  const std::lock_guard lock(mutex_);
  return calls_.observer().run_directory();
}

Result<std::unique_ptr<EngineCall>> EngineRecorder::BeginCall(std::string_view name,
                                                              const EngineCall* parent) {
  const bool is_module = IsModule(name);
  PL_TRY(CheckName(name, is_module));
  const std::lock_guard lock(mutex_);
  const Level level = calls_.config().level;
  const bool is_of_level = level == Level::kMix || (level == Level::kL0) == is_module;
  auto call = std::make_unique<EngineCall>();
  if (!is_of_level || !calls_.Records(call->state_)) return std::unique_ptr<EngineCall>();
  call->is_module_ = is_module;
  if (parent != nullptr) call->module_ = parent->is_module_ ? parent->name_ : parent->module_;
  if (!call->module_.empty()) {
    ModuleFrame frame;
    frame.name = call->module_;
    call->state_.modules.push_back(std::move(frame));
  }
  is_module ? BeginModule(name, *call) : BeginApi(name, *call);
  return call;
}

void EngineRecorder::BeginApi(std::string_view name, EngineCall& call) {
  call.api_ = calls_.NameApi(calls_.observer().counters().Register(name));
  calls_.Select(call.api_);
  calls_.BeginApi(call.state_, call.api_, {});
  call.name_ = call.api_.name;
  call.inputs_.is_wanted = call.keywords_.is_wanted = calls_.WantsInput(call.api_);
  call.outputs_.is_wanted = calls_.WantsOutput(call.api_);
}

void EngineRecorder::BeginModule(std::string_view name, EngineCall& call) {
  ModuleFrame frame = calls_.OpenModule(calls_.observer().counters().Register(name));
  call.name_ = frame.name;
  call.token_ = frame.token;
  call.api_.epoch = frame.epoch;
  call.inputs_.is_wanted = call.keywords_.is_wanted = calls_.WantsInput(frame);
  call.outputs_.is_wanted = calls_.WantsForwardOutput();
  call.parameters_.is_wanted = WantsDirection(calls_.config().data_mode, CallKind::kForward) &&
                               calls_.observer().selection().MaySelectModule(frame.name);
  call.state_.modules.push_back(std::move(frame));
}

Status EngineRecorder::CheckTold(const EngineCall& call, Role role, std::string_view name) {
  std::string_view problem;
  if (call.is_over_) {
    problem = "the call is over";
  } else if (role == Role::kInput && call.outputs_.count > 0) {
    problem = "an input behind an output (expected all inputs first)";
  } else if (role == Role::kParameter && (name.empty() || !call.is_module_)) {
    problem = "a parameter has a name, and only modules have any";
  } else if (role == Role::kOutput && !name.empty()) {
    problem = "an output has no name (expected null)";
  } else if (call.names_.contains(name)) {
    problem = "this name was told before";
  }
  if (problem.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}{}{}: {}", call.name_, name.empty() ? "" : ", ", name, problem));
}

EngineCall::Side& EngineRecorder::SideOf(EngineCall& call, Role role, std::string_view name) {
  if (role == Role::kOutput) return call.outputs_;
  if (role == Role::kParameter) return call.parameters_;
  return name.empty() ? call.inputs_ : call.keywords_;
}

Status EngineRecorder::AddTensor(EngineCall& call, Role role, std::string_view name,
                                 const TensorView& view) {
  const std::lock_guard lock(mutex_);
  PL_TRY(CheckTold(call, role, name));
  EngineCall::Side& side = SideOf(call, role, name);
  std::string place(name);
  if (name.empty()) place = std::to_string(side.count);
  if (!name.empty()) call.names_.insert(place);
  ++side.count;
  const Observer& observer = calls_.observer();
  if (!side.is_wanted || !observer.is_step_open() || call.api_.epoch != observer.epoch()) return {};
  calls_.NameEntry(call.state_, call.name_);
  const bool is_parameter = role == Role::kParameter;
  const Cut cut = cuts_.Of(view.sizes, /*has_tokens=*/!is_parameter);
  const TensorView part = cut.Of(view);
  std::string_view member = is_parameter ? "parameters" : "output";
  if (role == Role::kInput) member = name.empty() ? "input" : "kwargs";
  const std::string path = fmt::format("{}.{}", member, place);
  const TensorRecorder::Reading reading = tensors_.Read(call.state_, part, path, 0, nullptr);
  if (!name.empty()) side.packed.Key(name);
  tensors_.Pack(part, reading, {.type = texts_.tensor_type}, side.packed);
  return {};
}

Status EngineRecorder::EndCall(EngineCall& call) {
  const std::lock_guard lock(mutex_);
  if (call.is_over_) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: the call is over", call.name_));
  }
  call.is_over_ = true;
  call.is_module_ ? EndModule(call) : EndApi(call);
  return {};
}

void EngineRecorder::PackInputs(const EngineCall& call, EntryPacker& out) const {
  if (!call.inputs_.is_wanted) return;
  out.Key(keys_.inputs);
  out.BeginList();
  out.Raw(call.inputs_.packed.bytes());
  out.EndList();
  out.Key(keys_.keywords);
  out.BeginMap();
  out.Raw(call.keywords_.packed.bytes());
  out.EndMap();
}

void EngineRecorder::PackOutputs(const EngineCall& call, EntryPacker& out) const {
  if (!call.outputs_.is_wanted) return;
  out.Key(keys_.outputs);
  out.BeginList();
  out.Raw(call.outputs_.packed.bytes());
  out.EndList();
}

void EngineRecorder::EndApi(EngineCall& call) {
  if (!calls_.StillHasPlace(call.api_.epoch, call.name_)) return;
  EntryPacker& out = call.state_.call;
  PackInputs(call, out);
  PackOutputs(call, out);
  calls_.EndEntry(call.state_, call.name_, out, call.state_.call_kept, /*is_listed=*/true);
}

void EngineRecorder::EndModule(EngineCall& call) {
  EntryPacker& inputs = call.state_.event;
  inputs.Clear();
  PackInputs(call, inputs);
  call.state_.modules.back().inputs.bytes.assign(inputs.bytes().begin(), inputs.bytes().end());
  auto closed = calls_.CloseModule(call.state_, call.token_);
  if (!closed) return;
  KeptTensors kept;
  EntryPacker& out = call.state_.event;
  if (calls_.BeginModule(call.state_, *closed, {}, &kept)) {
    PackOutputs(call, out);
    out.Key(keys_.parameters);
    out.BeginMap();
    out.Raw(call.parameters_.packed.bytes());
    out.EndMap();
  }
  calls_.EndEntry(call.state_, call.name_, out, kept, /*is_listed=*/true);
}

}  // namespace plumbline::capture
