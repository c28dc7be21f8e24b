#include "precheck/precheck.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/file/file.h"
#include "base/memory/name_table.h"
#include "base/text/text_parts.h"
#include "precheck/call_flow.h"
#include "precheck/error_data.h"
#include "precheck/executor_pool.h"
#include "precheck/mindspore_calls.h"
#include "precheck/mindspore_error_data.h"
#include "precheck/output_grade.h"
#include "precheck/result_files.h"
#include "report/findings.h"

namespace plumbline::precheck {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostBenchWorkers = 64;
constexpr std::string_view kAnyDevice = "auto";

// Calls of a PyTorch recording.
class TorchCalls : public CheckedCalls {
 public:
  explicit TorchCalls(const CallPlan& plan) : plan_(plan) {}

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override {
    auto call = plan_.Prepare(index);
    if (!call) return call.error();
    CallToRun to_run;
    to_run.call = *std::move(call);
    return to_run;
  }

  // Upstream's files have both directions skipped, whatever was recorded.
  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override {
    CallOutcome outcome;
    outcome.name = plan_.call(index).name;
    outcome.merged_calls = plan_.call(index).merged_calls;
    outcome.backward = DirectionOutcome::Skipped(skip);
    outcome.forward = DirectionOutcome::Skipped(std::move(skip));
    return outcome;
  }

  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override {
    // A call that fails on the benchmark side is made again wrongly, whatever the device says.
    if (!ran.bench->forward) return Skipped(ran.index, ran.bench->forward.error());
    if (!ran.device->forward) return Skipped(ran.index, OnDevice(ran.device->forward.error()));
    const PreparedCall& call = ran.to_run->call;
    CallOutcome outcome;
    outcome.name = call.name;
    outcome.merged_calls = plan_.call(ran.index).merged_calls;
    outcome.forward = JudgeForward(ran);
    for (OutputRow& row : outcome.forward.rows) AddNotes(ran, row.message);
    outcome.backward = JudgeBackward(ran);
    return outcome;
  }

 private:
  static DirectionOutcome Grade(Direction direction, const RanCall& ran, const ReturnedPair& pair) {
    const PreparedCall& call = ran.to_run->call;
    GradeOptions options;
    options.given = {&call,
                     ran.inputs,
                     {&*ran.bench->forward, ran.bench_memory},
                     {&*ran.device->forward, ran.device_memory}};
    return GradeDirection(call.name, call.api, direction, pair, options);
  }

  static DirectionOutcome JudgeForward(const RanCall& ran) {
    const auto arguments_of = [](const SideResult& side) {
      return side.arguments ? &*side.arguments : nullptr;
    };
    return Grade(Direction::kForward, ran,
                 {&*ran.bench->forward, ran.bench_memory, &*ran.device->forward, ran.device_memory,
                  arguments_of(*ran.bench), arguments_of(*ran.device)});
  }

  static void AddNotes(const RanCall& ran, std::string& message) {
    for (const SideResult* side : {ran.bench, ran.device}) {
      if (side->note.empty()) continue;
      message += fmt::format("{}{}: {}.", message.empty() ? "" : "\n",
                             side == ran.bench ? "benchmark" : "device", side->note);
    }
  }

  static DirectionOutcome JudgeBackward(const RanCall& ran) {
    const PreparedCall& call = ran.to_run->call;
    if (call.backward_skip) return DirectionOutcome::Skipped(*call.backward_skip);
    if (!call.grads) return {};
    for (const SideResult* side : {ran.bench, ran.device}) {
      if (!side->backward) {
        return DirectionOutcome::Skipped({SkipCause::kBackwardSkipped, "no gradient was computed"});
      }
      if (!*side->backward) return DirectionOutcome::Skipped(side->backward->error());
    }
    return Grade(
        Direction::kBackward, ran,
        {&**ran.bench->backward, ran.bench_memory, &**ran.device->backward, ran.device_memory});
  }

  const CallPlan& plan_;
};

// Keeps what the calls that do not pass were given and returned.
using SaveCall = std::function<plumbline::Status(const std::string& directory, const RanCall& ran,
                                                 const CallOutcome& outcome)>;
class KeepingCalls : public CheckedCalls {
 public:
  KeepingCalls(const CheckedCalls& calls, SaveCall save) : calls_(calls), save_(std::move(save)) {}

  // Before the first call is judged.
  void set_directory(std::string directory) { directory_ = std::move(directory); }

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override {
    return calls_.Prepare(index);
  }
  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override {
    return calls_.Skipped(index, std::move(skip));
  }
  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override {
    CallOutcome outcome = calls_.Judge(ran);
    if (!IsWorthKeeping(outcome)) return outcome;
    const plumbline::Status saved = save_(directory_, ran, outcome);
    const std::scoped_lock lock(mutex_);
    if (saved) {
      has_saved_ = true;
    } else if (problem_.empty()) {
      problem_ = saved.error().message();
    }
    return outcome;
  }

  [[nodiscard]] bool has_saved() const { return has_saved_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  // The first failure; empty: none.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  const CheckedCalls& calls_;
  std::string directory_;
  const SaveCall save_;
  mutable std::mutex mutex_;
  mutable bool has_saved_ = false;
  mutable std::string problem_;
};

// The options that a run needs again to go on, as the command has them.
std::string ResumeOptions(const PrecheckOptions& options, const std::string& device) {
  std::string words;
  const auto add = [&](bool is_needed, std::string_view option, const std::string& value) {
    if (is_needed) words += fmt::format(" {} {}", option, report::ShellWord(value));
  };
  const PlanOptions& plan = options.plan;
  const bool has_config = !options.config_path.empty();
  add(!device.empty(), "--device_type", device);
  // The CPU is one device, whatever numbers were given beside "auto".
  if (device != "cpu" && options.devices != std::vector<int>{0}) {
    words += fmt::format(" -d {}", fmt::join(options.devices, " "));
  }
  add(has_config, "--config", options.config_path);
  add(has_config || plan.seed != kDefaultSeed, "--seed", std::to_string(plan.seed));
  add(options.workers > 0, "-n", std::to_string(options.workers));
  add(options.worker_threads != 1, "--worker_threads", std::to_string(options.worker_threads));
  add(options.max_abs_error != MindSporeLimits().max_abs_error, "--max_abs_err",
      fmt::format("{}", options.max_abs_error));
  add(!options.python.empty(), "--python", options.python);
  if (plan.dedupe) words += " --dedup";
  if (options.save_error_data) words += " --save_error_data";
  if (options.sorted) words += " --sorted";
  return words;
}

// What the recordings of the frameworks have different.
struct RecordingForm {
  ResultForm files = ResultForm::kPyTorch;
  std::string executors;      // what the Python interpreter is to load
  std::string error_data;     // directory of kept calls; the time of the files is appended
  bool has_timestamp = true;  // to it
  bool runs_device = true;    // else what was recorded is judged
  SaveCall save;
};

// One run over the calls of a plan (CallPlan, MindSporePlan).
template <class Plan>
class Precheck {
 public:
  Precheck(const PrecheckOptions& options, const Plan& plan, const CheckedCalls& calls,
           RecordingForm form)
      : options_(options),
        plan_(plan),
        places_(plan.size()),
        calls_(calls),
        form_(std::move(form)),
        device_type_(options.device_type) {
    for (size_t i = 0; i < plan.size(); ++i) places_.Add(i, NameAt{plan});
  }

  Result<PrecheckReport> Run() {
    const auto begin = Clock::now();
    PL_TRY(LearnFacts());
    PL_TRY(FindEarlier());
    if (options_.save_error_data) keeping_.emplace(calls_, form_.save);
    if (plumbline::Status run = RunRunnable(); !run) {
      // Where a device or an interpreter is no use, nothing is left of the attempt.
      if (options_.resume_path.empty() && files_ && !any_judged_) files_->RemoveAll();
      return run.error();
    }
    if (options_.sorted) {
      PL_TRY(files_->Sort([this](std::string_view call) { return PlaceOf(call); }));
    }
    PL_TRY(files_->Close());
    FillReport();
    report_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(report_);
  }

 private:
  struct NameAt {
    const Plan& plan;
    std::string_view operator()(size_t i) const { return plan.call(i).name; }
  };
  [[nodiscard]] std::optional<size_t> PlaceOf(std::string_view call) const {
    return places_.Find(call, NameAt{plan_});
  }

  // What is known of the run before the device is.
  plumbline::Status LearnFacts() {
    PL_TRY_ASSIGN(facts_.digest, DigestOfFile(plan_.path()));
    PL_TRY_ASSIGN(facts_.dump_json, AbsolutePath(plan_.path()));
    facts_.framework = plan_.framework();
    if (form_.runs_device && device_type_ != kAnyDevice) facts_.device = device_type_;
    facts_.seed = options_.plan.seed;
    facts_.worker_threads = options_.worker_threads;
    facts_.dedupe = options_.plan.dedupe;
    facts_.precision = options_.precision;
    facts_.max_abs_error = form_.files == ResultForm::kMindSpore ? options_.max_abs_error : 0;
    return {};
  }

  [[nodiscard]] ResultFilesOptions FilesOptions() const {
    ResultFilesOptions options;
    options.form = form_.files;
    options.precision = options_.precision;
    options.retry_skipped = options_.retry_skipped;
    options.facts = facts_;
    return options;
  }

  // Said before the framework is loaded: there is no place for the files. What is tried is gone.
  plumbline::Status CheckOutputDirectory() const {
    PL_TRY(MakeDirectories(options_.output_dir));
    PL_TRY(AtomicFile::Create(JoinPath(options_.output_dir, "accuracy_checking_run.json")));
    return {};
  }

  // Of a run that goes on, what the earlier one judged; nothing is changed yet.
  plumbline::Status FindEarlier() {
    if (options_.resume_path.empty()) return CheckOutputDirectory();
    const auto is_planned = [this](std::string_view call) { return PlaceOf(call).has_value(); };
    PL_TRY_ASSIGN(files_, ResultFiles::Resume(options_.resume_path, is_planned, FilesOptions()));
    for (const auto& [call, done] : files_->done()) {
      report_.AddEarlier(
          {PlaceOf(call).value_or(0), call, done.forward, done.backward, done.outputs, done.skip});
    }
    done_ = files_->done().size();
    const std::optional<RunFacts>& earlier = files_->earlier_facts();
    const bool is_known = earlier && !earlier->device.empty() && form_.runs_device;
    if (is_known && device_type_ == kAnyDevice) device_type_ = earlier->device;
    if (earlier) {
      report_.device = earlier->device;
      report_.framework_version = earlier->framework_version;
    }
    return {};
  }

  // The files, once nothing is in the way of the first row. Without `server` nothing is to run.
  plumbline::Status BeginFiles(const ServerFacts* server) {
    if (server != nullptr) {
      report_.framework_version = facts_.framework_version = server->framework_version;
      report_.device = facts_.device = form_.runs_device ? server->device : "recorded results";
      if (form_.runs_device) facts_.device_name = server->device_name;
    }
    if (files_) {
      PL_TRY(files_->Begin(facts_));
    } else {
      PL_TRY_ASSIGN(files_,
                    ResultFiles::Create(options_.output_dir, ResultTimestamp(options_.output_dir),
                                        FilesOptions()));
    }
    if (keeping_) {
      const std::string stamp = form_.has_timestamp ? files_->timestamp() : "";
      keeping_->set_directory(form_.error_data + stamp);
    }
    return RecordUnrunnable();
  }

  [[nodiscard]] bool IsDone(size_t index) const {
    return files_ && files_->done().contains(plan_.call(index).name);
  }

  plumbline::Status Record(size_t index, CallOutcome outcome) {
    PL_TRY(files_->Append(outcome));
    any_judged_ = any_judged_ || outcome.forward.status != CheckStatus::kSkip;
    report_.Add(index, std::move(outcome));
    ++done_;
    if (options_.on_progress) options_.on_progress(done_, plan_.size());
    return {};
  }

  // Calls that the plan leaves out have their rows too.
  plumbline::Status RecordUnrunnable() {
    for (size_t i = 0; i < plan_.size(); ++i) {
      const std::optional<Skip>& skip = plan_.call(i).skip;
      if (skip && !IsDone(i)) PL_TRY(Record(i, calls_.Skipped(i, *skip)));
    }
    return {};
  }

  [[nodiscard]] PoolOptions PoolOptionsFor(size_t calls) const {
    const size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const auto most = static_cast<int>(std::min(calls, kMostBenchWorkers));
    PoolOptions pool;
    pool.program.python = options_.python;
    pool.framework = form_.executors;
    pool.device_type = device_type_;
    pool.devices = options_.devices;
    pool.device_workers =
        options_.workers > 0 ? options_.workers : static_cast<int>(options_.devices.size());
    pool.bench_workers =
        options_.bench_workers > 0 ? options_.bench_workers : static_cast<int>(cores);
    pool.bench_workers = std::min(pool.bench_workers, most);
    pool.threads = options_.worker_threads;
    pool.call_limit = options_.api_timeout;
    const auto busiest = static_cast<size_t>(std::max(pool.device_workers, pool.bench_workers));
    pool.slots = std::clamp(2 * busiest + 2 * cores + 2, kFewestSlots, kMostSlots);
    return pool;
  }

  plumbline::Status RunRunnable() {
    std::vector<size_t> order = plan_.ByCost();
    std::erase_if(order, [this](size_t i) { return plan_.call(i).skip || IsDone(i); });
    if (order.empty()) return BeginFiles(nullptr);
    PL_TRY_ASSIGN(const std::unique_ptr<ExecutorPool> pool,
                  ExecutorPool::Start(PoolOptionsFor(order.size())));
    const CheckedCalls& calls = keeping_ ? static_cast<const CheckedCalls&>(*keeping_) : calls_;
    FlowOptions flow;
    flow.threads = static_cast<size_t>(options_.threads);
    flow.is_stopped = options_.is_stopped;
    flow.on_ready = [this](const ServerFacts& server) { return BeginFiles(&server); };
    PL_TRY_ASSIGN(const FlowEnd end,
                  RunCalls(calls, order, *pool, flow, [this](size_t index, CallOutcome outcome) {
                    return Record(index, std::move(outcome));
                  }));
    report_.was_interrupted = end.was_stopped;
    return {};
  }

  void FillReport() {
    report_.dump_json = plan_.path();
    report_.framework = plan_.framework();
    report_.result_path = files_->result_path();
    report_.details_path = files_->details_path();
    report_.planned_calls = plan_.size();
    report_.resume_options = ResumeOptions(options_, form_.runs_device ? report_.device : "");
    report_.warnings = plan_.warnings();
    report_.warnings.insert(report_.warnings.end(), files_->warnings().begin(),
                            files_->warnings().end());
    if (device_type_ == kAnyDevice && report_.device == "cpu") {
      report_.warnings.push_back(
          "there is no NPU and no CUDA device: the device side ran on the CPU, in the recorded "
          "types. Name another device with --device_type");
    }
    if (keeping_ && keeping_->has_saved()) report_.error_data = keeping_->directory();
    if (keeping_ && !keeping_->problem().empty()) {
      report_.warnings.push_back("error data is incomplete: " + keeping_->problem());
    }
    report_.Finish();
  }

  const PrecheckOptions& options_;
  const Plan& plan_;
  NameTable places_;
  const CheckedCalls& calls_;
  const RecordingForm form_;
  std::string device_type_;  // of the options, or of the earlier run
  RunFacts facts_;
  bool any_judged_ = false;
  std::optional<KeepingCalls> keeping_;
  std::optional<ResultFiles> files_;
  PrecheckReport report_;
  uint64_t done_ = 0;
};

bool IsMindSpore(std::string_view framework) {
  return framework == "mindspore" || framework == "mindtorch";
}

Error OtherFramework(const PrecheckOptions& options, std::string_view framework,
                     std::string_view expected) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: was recorded with {} (expected {}). Name a recording of {}",
                      options.dump_json, framework, expected, expected)};
}

Result<PrecheckReport> RunMindSpore(const PrecheckOptions& options) {
  PL_TRY_ASSIGN(const MindSporePlan plan,
                MindSporePlan::Open(options.dump_json, options.plan.seed));
  MindSporeLimits limits;
  limits.max_abs_error = options.max_abs_error;
  const MindSporeCheck calls(plan, limits);
  MindSporeErrorData kept(options.output_dir, plan.framework());
  RecordingForm form;
  form.files = ResultForm::kMindSpore;
  // What was recorded is judged without MindSpore, which need not be there then.
  form.executors = plan.uses_recorded_data() ? "native_torch" : plan.framework();
  form.error_data = kept.directory();
  form.has_timestamp = false;
  form.runs_device = !plan.uses_recorded_data();
  form.save = [&](const std::string&, const RanCall& ran, const CallOutcome& outcome) {
    return kept.Add(ran, outcome);
  };
  PL_TRY_ASSIGN(PrecheckReport report, Precheck(options, plan, calls, std::move(form)).Run());
  PL_TRY(kept.Finish());
  return report;
}

Result<PrecheckReport> RunTorch(const PrecheckOptions& options) {
  PL_TRY_ASSIGN(const CallPlan plan, CallPlan::Open(options.dump_json, options.plan));
  const std::string& framework = plan.framework();
  // Said behind the entries, or by their tensors alone.
  const bool is_mindspore = IsMindSpore(LowerCase(framework)) || LowerCase(framework) == "ms";
  if (is_mindspore && options.framework != "pytorch") return RunMindSpore(options);
  if (framework != "pytorch" && framework != "pt") {
    return OtherFramework(options, framework, "pytorch, mindspore or mindtorch");
  }
  const TorchCalls calls(plan);
  RecordingForm form;
  form.executors = "pytorch";
  form.error_data = JoinPath(options.error_data_path, "ut_error_data");
  form.save = [&](const std::string& directory, const RanCall& ran, const CallOutcome& outcome) {
    return SaveErrorData(directory, options.plan.seed, ran, outcome);
  };
  return Precheck(options, plan, calls, std::move(form)).Run();
}

}  // namespace

Result<PrecheckReport> RunPrecheck(const PrecheckOptions& options) {
  PL_TRY_ASSIGN(const std::string recorded, FrameworkOf(options.dump_json));
  // Without a word in the file, upstream's -f tells.
  const bool is_mindspore =
      IsMindSpore(recorded) || (recorded.empty() && options.framework == "mindspore");
  const bool is_expected = options.framework.empty() || recorded.empty() ||
                           (options.framework == "mindspore") == is_mindspore;
  if (!is_expected) return OtherFramework(options, recorded, options.framework);
  return is_mindspore ? RunMindSpore(options) : RunTorch(options);
}

}  // namespace plumbline::precheck
