#include "precheck/overflow/overflow_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "precheck/call_flow.h"
#include "precheck/executor_pool.h"
#include "tensor/half.h"

namespace plumbline::precheck {
namespace {

using Clock = std::chrono::steady_clock;

// ---- Calls made ready ----

template <class Use>
void ForEachGiven(PreparedCall& call, const Use& use) {
  ForEachInput(call, use);
  if (!call.grads) return;
  for (CallValue& value : *call.grads) ForEachTensor(value, use);
}

bool HasNarrowFormat(DType dtype) { return NarrowFormatOf(dtype) != nullptr; }

// What the CPU computes in.
enum class CpuTypes : uint8_t { kRecorded, kFloat32ForNarrow, kRaised };

void ApplyTypes(CpuTypes types, PreparedCall& call) {
  if (types == CpuTypes::kRaised) return;  // as it was planned
  ForEachGiven(call, [types](TensorPlace& place) {
    const bool is_wider = types == CpuTypes::kFloat32ForNarrow && HasNarrowFormat(place.dtype);
    place.raised = is_wider ? std::optional(DType::kFloat32) : std::nullopt;
  });
}

bool HasNarrowInput(PreparedCall call) {
  bool has_narrow = false;
  ForEachGiven(call, [&](const TensorPlace& place) { has_narrow |= HasNarrowFormat(place.dtype); });
  return has_narrow;
}

// The forward calls of a plan. Each call has a row of its own, so that calls may be judged side by
// side.
class OverflowCalls : public CheckedCalls {
 public:
  OverflowCalls(const CallPlan& plan, CpuTypes types)
      : plan_(plan), types_(types), rows_(plan.size()), wants_float32_(plan.size(), 0) {}

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override {
    // On the CPU a function of ours stands in for them, whose overflow says nothing.
    if (plan_.call(index).type() == "NPU") {
      return Skip{SkipCause::kUnsupportedType, "calls of type NPU are not run again"};
    }
    auto call = plan_.Prepare(index);
    if (!call) return call.error();
    CallToRun to_run;
    to_run.call = *std::move(call);
    to_run.call.grads.reset();
    to_run.call.backward_skip.reset();
    ApplyTypes(types_, to_run.call);
    return to_run;
  }

  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override {
    rows_[index] = SkippedRow(plan_.call(index).name, skip);
    return {};
  }

  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override {
    const SideValue& bench = ran.bench->forward;
    const bool has_failed = !bench && bench.error().cause == SkipCause::kCpuFailed;
    wants_float32_[ran.index] =
        types_ == CpuTypes::kRecorded && has_failed && HasNarrowInput(ran.to_run->call) ? 1 : 0;
    rows_[ran.index] = ClassifyOverflow(ran);
    return {};
  }

  // From now on the CPU computes in float32 where a type is narrower; returns which calls want it,
  // because the CPU could not run them in their types.
  std::vector<size_t> StartFloat32() {
    types_ = CpuTypes::kFloat32ForNarrow;
    std::vector<size_t> wanted;
    for (size_t i = 0; i < wants_float32_.size(); ++i) {
      if (wants_float32_[i] != 0) wanted.push_back(i);
    }
    return wanted;
  }

  [[nodiscard]] std::vector<std::optional<OverflowRow>>& rows() { return rows_; }

 private:
  const CallPlan& plan_;
  CpuTypes types_;
  // By call; one thread writes each, and the flow hands it over.
  mutable std::vector<std::optional<OverflowRow>> rows_;
  mutable std::vector<uint8_t> wants_float32_;
};

PoolOptions PoolOptionsOf(const OverflowReplayOptions& options, const std::string& framework,
                          size_t calls) {
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  PoolOptions pool;
  pool.program.python = options.python;
  if (options.compiles_operators) {
    const char* const option[] = {"-X", "plumbline_jit_compile"};  // of the interpreter
    pool.program.words.insert(pool.program.words.begin(), std::begin(option), std::end(option));
  }
  pool.framework = framework;
  pool.device_type = options.device_type;
  pool.devices = {options.device};
  pool.bench_workers = static_cast<int>(std::min(cores, std::max<size_t>(calls, 1)));
  pool.call_limit = options.api_timeout;
  pool.slots = std::clamp(4 * cores + 2, kFewestSlots, kMostSlots);
  return pool;
}

Result<CallPlan> OpenPlan(const OverflowReplayOptions& options, bool forward_only) {
  PlanOptions plan_options;
  plan_options.seed = options.seed;
  plan_options.keep_random = true;  // whether dropout overflows depends on no draw
  plan_options.forward_only = forward_only;
  PL_TRY_ASSIGN(CallPlan plan, CallPlan::Open(options.dump_json, plan_options));
  if (plan.framework() != "pytorch") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: was recorded with {} (expected pytorch, whose calls alone are "
                             "checked for overflow)",
                             options.dump_json, plan.framework()));
  }
  return plan;
}

std::string ResultPath(const std::string& directory) {
  // A later second where this one has a file already.
  for (std::time_t time = std::time(nullptr);; ++time) {
    std::tm local{};
    localtime_r(&time, &local);
    char text[64];
    (void)std::strftime(text, sizeof(text), "overflow_check_result_%Y%m%d%H%M%S.csv", &local);
    std::string path = JoinPath(directory, text);
    if (KindOf(path) == PathKind::kMissing) return path;
  }
}

// One run over the calls of a plan.
class Replay {
 public:
  Replay(const OverflowReplayOptions& options, const CallPlan& plan)
      : options_(options), plan_(plan) {}

  Result<OverflowReplayReport> Run() {
    const auto begin = Clock::now();
    // A directory that cannot be written to is told before the work, not after.
    PL_TRY(MakeDirectories(options_.output_dir));
    const std::string path = ResultPath(options_.output_dir);
    PL_TRY(WriteFileAtomically(path, OverflowCsv({}), /*durable=*/false));
    PL_TRY(RunAll());
    PL_TRY(WriteFileAtomically(path, OverflowCsv(report_.rows), /*durable=*/false));
    report_.dump_json = plan_.path();
    report_.has_recorded_data = plan_.uses_recorded_data();
    report_.result_path = path;
    const std::vector<std::string>& warnings = plan_.warnings();
    report_.warnings.insert(report_.warnings.begin(), warnings.begin(), warnings.end());
    report_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(report_);
  }

 private:
  plumbline::Status RunAll() {
    const std::vector<size_t> order = plan_.ByCost();
    std::unique_ptr<ExecutorPool> pool;
    auto types = CpuTypes::kRecorded;
    if (!order.empty()) {
      PL_TRY_ASSIGN(pool,
                    ExecutorPool::Start(PoolOptionsOf(options_, plan_.framework(), order.size())));
      PL_TRY_ASSIGN(const ServerFacts facts, pool->AwaitReady());
      report_.device = facts.device;
      report_.framework_version = facts.framework_version;
      if (facts.device == "cpu") types = CpuTypes::kRaised;
      NoteDevice();
    }
    OverflowCalls calls(plan_, types);
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (plan_.call(i).skip) (void)calls.Skipped(i, *plan_.call(i).skip);
    }
    done_ = plan_.size() - order.size();
    if (pool) {
      PL_TRY(RunSome(calls, order, *pool));
      const std::vector<size_t> again = calls.StartFloat32();
      done_ -= again.size();
      if (!again.empty() && !report_.was_interrupted) PL_TRY(RunSome(calls, again, *pool));
    }
    for (std::optional<OverflowRow>& row : calls.rows()) {
      if (row) report_.rows.push_back(*std::move(row));
    }
    return {};
  }

  plumbline::Status RunSome(const OverflowCalls& calls, const std::vector<size_t>& order,
                            ExecutorPool& pool) {
    FlowOptions flow;
    flow.threads = static_cast<size_t>(options_.threads);
    flow.is_stopped = options_.is_stopped;
    const auto count = [this](size_t, CallOutcome) {
      ++done_;
      if (options_.on_progress) options_.on_progress(done_, plan_.size());
      return plumbline::Status();
    };
    PL_TRY_ASSIGN(const FlowEnd end, RunCalls(calls, order, pool, flow, count));
    report_.was_interrupted = report_.was_interrupted || end.was_stopped;
    return {};
  }

  void NoteDevice() {
    if (options_.device_type != "auto" || report_.device != "cpu") return;
    report_.warnings.emplace_back(
        "there is no NPU and no CUDA device: the recorded types are compared with raised ones on "
        "the CPU. Name another device with --device_type");
  }

  const OverflowReplayOptions& options_;
  const CallPlan& plan_;
  OverflowReplayReport report_;
  uint64_t done_ = 0;
};

}  // namespace

Result<OverflowReplayReport> RunOverflowReplay(const OverflowReplayOptions& options) {
  PL_TRY_ASSIGN(const CallPlan plan, OpenPlan(options, /*forward_only=*/true));
  return Replay(options, plan).Run();
}

// ---- One call in other types ----

namespace {

constexpr std::array kOtherTypes = {DType::kBFloat16, DType::kFloat32};
constexpr std::string_view kForward = ".forward", kBackward = ".backward";

// The same call once per type, on the CPU alone.
class OtherTypeCalls : public CheckedCalls {
 public:
  OtherTypeCalls(PreparedCall call, bool is_backward)
      : call_(std::move(call)), is_backward_(is_backward) {
    for (size_t i = 0; i < kOtherTypes.size(); ++i) runs_[i].dtype = kOtherTypes[i];
  }

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override {
    CallToRun to_run;
    to_run.call = call_;
    to_run.runs_device = false;
    to_run.call.autocast.reset();
    ForEachGiven(to_run.call, [index](TensorPlace& place) {
      place.raised.reset();
      if (InfoOf(place.dtype).kind == DTypeKind::kFloat) place.raised = kOtherTypes[index];
    });
    return to_run;
  }

  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override {
    runs_[index].problem = skip.Text();
    return {};
  }

  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override {
    const SideResult& side = *ran.bench;
    if (is_backward_ && !side.backward) {
      return Skipped(ran.index, {SkipCause::kBackwardSkipped, "no gradient was computed"});
    }
    const SideValue& value = is_backward_ ? *side.backward : side.forward;
    if (!value) return Skipped(ran.index, value.error());
    OverflowSearch search(ran.bench_memory);
    search.Look(*value, "output");
    if (value->is_null() || !search.unknown.empty()) {
      return Skipped(ran.index, {SkipCause::kNoOutput, "returns nothing that can be looked at"});
    }
    runs_[ran.index].stays_finite = !search.has_overflow;
    return {};
  }

  [[nodiscard]] const std::array<OtherTypeRun, 2>& runs() const { return runs_; }

 private:
  const PreparedCall call_;
  const bool is_backward_;
  mutable std::array<OtherTypeRun, 2> runs_;  // one thread writes each
};

Result<PreparedCall> PrepareNamed(const CallPlan& plan, std::string_view name) {
  const bool is_backward = name.ends_with(kBackward);
  if (!is_backward && !name.ends_with(kForward)) {
    return Error(ErrorCode::kUnsupported, fmt::format("{}: is no call of an API", name));
  }
  const auto call_name = name.substr(0, name.size() - (is_backward ? kBackward : kForward).size());
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan.call(i).name != call_name) continue;
    auto call = plan.Prepare(i);
    if (!call) return Error(ErrorCode::kUnsupported, call.error().Text());
    if (!is_backward) call->grads.reset();
    if (is_backward && !call->grads) {
      const std::string why = call->backward_skip ? call->backward_skip->Text() : "not recorded";
      return Error(ErrorCode::kUnsupported, fmt::format("{}: no gradients: {}", name, why));
    }
    return *std::move(call);
  }
  return Error(ErrorCode::kNotFound, fmt::format("{}: {} is no call there", plan.path(), name));
}

}  // namespace

Result<std::array<OtherTypeRun, 2>> RunInOtherTypes(const std::string& name,
                                                    const OverflowReplayOptions& options) {
  const bool is_backward = name.ends_with(kBackward);
  PL_TRY_ASSIGN(const CallPlan plan, OpenPlan(options, !is_backward));
  if (!plan.uses_recorded_data()) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: no tensors were saved (record with task tensor)", plan.path()));
  }
  PL_TRY_ASSIGN(PreparedCall call, PrepareNamed(plan, name));
  OverflowReplayOptions on_cpu = options;
  on_cpu.device_type = "cpu";
  PL_TRY_ASSIGN(const std::unique_ptr<ExecutorPool> pool,
                ExecutorPool::Start(PoolOptionsOf(on_cpu, plan.framework(), kOtherTypes.size())));
  const OtherTypeCalls calls(std::move(call), is_backward);
  PL_TRY_ASSIGN(const FlowEnd end, RunCalls(calls, {0, 1}, *pool, {}, [](size_t, CallOutcome) {
                  return plumbline::Status();
                }));
  return calls.runs();
}

}  // namespace plumbline::precheck
