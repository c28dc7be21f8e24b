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
#include "base/file/remove_directory.h"
#include "base/memory/name_table.h"
#include "base/text/json_record.h"
#include "base/text/text_parts.h"
#include "precheck/call_flow.h"
#include "precheck/error_data.h"
#include "precheck/executor_pool.h"
#include "precheck/mindspore_calls.h"
#include "precheck/mindspore_error_data.h"
#include "precheck/output_grade.h"
#include "precheck/parts/outcome_record.h"
#include "precheck/parts/part_data.h"
#include "precheck/result_files.h"
#include "report/findings.h"

namespace plumbline::precheck {

// What a part says of itself.
struct PartNote {
  // Of the interpreter; empty where nothing was to be run.
  std::string framework_version, device, device_name;
  double seconds = 0;
  // Calls that do not pass were kept, the first failure to keep one, and whether there are files.
  bool has_saved = false;
  std::string problem;
  bool has_files = false;
};

void VisitRecord(auto& archive, json::RecordOf<PartNote> auto& note) {
  archive(note.framework_version, note.device, note.device_name, note.seconds, note.has_saved,
          note.problem, note.has_files);
}

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
  // Of parts: how the names of directories with kept calls begin (PartDirectory()), and what moves
  // them from one of these to where they belong.
  std::string part_data;
  std::function<plumbline::Status(const std::string& part, const std::string& directory)> take;
};

// What of the work this process does: all, a part, or to put together what all parts are.
struct WorkShare {
  const ShardPlace* place = nullptr;
  ShardPart* part = nullptr;  // with `place`: what became of it
  const ShardedItems* parts = nullptr;
};

// "pytorch 2.13.0 on cuda (NVIDIA H100 80GB HBM3)".
std::string PlaceText(std::string_view framework, const PartNote& note, bool runs_device) {
  std::string text = fmt::format("{} {}", framework, note.framework_version);
  if (!runs_device) return text;
  text += " on " + note.device;
  return note.device_name.empty() ? text : fmt::format("{} ({})", text, note.device_name);
}

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
        device_type_(options.device_type),
        to_do_(plan.size()) {
    for (size_t i = 0; i < plan.size(); ++i) places_.Add(i, NameAt{plan});
  }

  // Of a part alone the report is empty.
  Result<PrecheckReport> Do(const WorkShare& share) {
    PL_TRY(LearnFacts());
    if (share.parts != nullptr) return Merge(*share.parts);
    if (share.place == nullptr) return Run();
    PL_TRY_ASSIGN(*share.part, RunPart(*share.place));
    return PrecheckReport();
  }

 private:
  Result<PrecheckReport> Run() {
    const auto begin = Clock::now();
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
    if (keeping_) {
      TellKept(keeping_->has_saved() ? keeping_->directory() : "", keeping_->problem());
    }
    FillReport();
    report_.seconds = SecondsSince(begin);
    return std::move(report_);
  }

  Result<ShardPart> RunPart(const ShardPlace& place) {
    const auto begin = Clock::now();
    PL_TRY(CheckOutputDirectory());
    part_.emplace();
    part_->all = plan_.size();
    part_->state = StateOfWork();
    TakeShare(place);
    std::string directory;
    if (options_.save_error_data) {
      keeping_.emplace(calls_, form_.save);
      PL_TRY_ASSIGN(directory, PartDirectory(form_.part_data, options_.output_dir, place));
      keeping_->set_directory(directory);
    }
    PL_TRY(RunRunnable());
    if (report_.was_interrupted) return Error(ErrorCode::kIo, "interrupted");
    PartNote note;
    note.framework_version = facts_.framework_version;
    note.device = server_device_;
    note.device_name = facts_.device_name;
    note.seconds = SecondsSince(begin);
    if (keeping_) {
      note.has_saved = keeping_->has_saved();
      note.problem = keeping_->problem();
      note.has_files = KindOf(directory) == PathKind::kDirectory;
    }
    part_->note = json::RecordText(note);
    return *std::move(part_);
  }

  Result<PrecheckReport> Merge(const ShardedItems& parts) {
    if (parts.items.size() != plan_.size() || parts.state != StateOfWork()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: it or the configuration has changed since its calls were run. "
                               "Run all shards again",
                               plan_.path()));
    }
    PL_TRY_ASSIGN(const std::vector<PartNote> notes, TakeNotes(parts.notes));
    PL_TRY(CheckOutputDirectory());
    PL_TRY(OpenFiles());
    if (plumbline::Status recorded = RecordItems(parts.items); !recorded) {
      files_->RemoveAll();
      return recorded.error();
    }
    PL_TRY(files_->Close());
    if (options_.save_error_data) TakeKept(notes);
    FillReport();
    for (const PartNote& note : notes) report_.seconds += note.seconds;
    return std::move(report_);
  }

  static double SecondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

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

  void LearnDevice(const std::string& framework_version, const std::string& device,
                   const std::string& device_name) {
    server_device_ = device;
    report_.framework_version = facts_.framework_version = framework_version;
    report_.device = facts_.device = form_.runs_device ? device : "recorded results";
    if (form_.runs_device) facts_.device_name = device_name;
  }

  // Nothing is in the way of the first row any more. Without `server` nothing is to run.
  plumbline::Status Begin(const ServerFacts* server) {
    if (server != nullptr) {
      LearnDevice(server->framework_version, server->device, server->device_name);
    }
    if (!part_) PL_TRY(OpenFiles());
    return RecordUnrunnable();
  }

  plumbline::Status OpenFiles() {
    if (files_) {
      PL_TRY(files_->Begin(facts_));
    } else {
      PL_TRY_ASSIGN(files_,
                    ResultFiles::Create(options_.output_dir, ResultTimestamp(options_.output_dir),
                                        FilesOptions()));
    }
    if (keeping_) keeping_->set_directory(KeptDirectory());
    return {};
  }

  [[nodiscard]] std::string KeptDirectory() const {
    return form_.error_data + (form_.has_timestamp ? files_->timestamp() : "");
  }

  [[nodiscard]] bool IsDone(size_t index) const {
    return files_ && files_->done().contains(plan_.call(index).name);
  }

  // Of a part, others do the calls of other parts.
  [[nodiscard]] bool IsToDo(size_t index) const {
    return (is_mine_.empty() || is_mine_[index]) && !IsDone(index);
  }

  // The expensive calls go round, so that parts take about the same time.
  void TakeShare(const ShardPlace& place) {
    is_mine_.resize(plan_.size());
    const std::vector<size_t> order = plan_.ByCost();
    for (size_t i = 0; i < order.size(); ++i) is_mine_[order[i]] = place.Has(i);
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (plan_.call(i).skip) is_mine_[i] = place.Has(i);
    }
    to_do_ = static_cast<uint64_t>(std::count(is_mine_.begin(), is_mine_.end(), true));
  }

  plumbline::Status Record(size_t index, CallOutcome outcome) {
    if (part_) {
      part_->items[index] = json::RecordText(outcome);
    } else {
      PL_TRY(files_->Append(outcome));
      any_judged_ = any_judged_ || outcome.forward.status != CheckStatus::kSkip;
      report_.Add(index, std::move(outcome));
    }
    ++done_;
    if (options_.on_progress) options_.on_progress(done_, to_do_);
    return {};
  }

  // Calls that the plan leaves out have their rows too.
  plumbline::Status RecordUnrunnable() {
    for (size_t i = 0; i < plan_.size(); ++i) {
      const std::optional<Skip>& skip = plan_.call(i).skip;
      if (skip && IsToDo(i)) PL_TRY(Record(i, calls_.Skipped(i, *skip)));
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
    std::erase_if(order, [this](size_t i) { return !IsToDo(i); });
    if (order.empty()) return Begin(nullptr);
    PL_TRY_ASSIGN(const std::unique_ptr<ExecutorPool> pool,
                  ExecutorPool::Start(PoolOptionsFor(order.size())));
    const CheckedCalls& calls = keeping_ ? static_cast<const CheckedCalls&>(*keeping_) : calls_;
    FlowOptions flow;
    flow.threads = static_cast<size_t>(options_.threads);
    flow.is_stopped = options_.is_stopped;
    flow.on_ready = [this](const ServerFacts& server) { return Begin(&server); };
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
    if (!kept_problem_.empty()) {
      report_.warnings.push_back("error data is incomplete: " + kept_problem_);
    }
    report_.Finish();
  }

  // `directory`: of kept calls; empty: there are none.
  void TellKept(std::string directory, std::string problem) {
    report_.error_data = std::move(directory);
    kept_problem_ = std::move(problem);
  }

  // All parts as one work.

  // By which parts of the same are known, before the device is.
  [[nodiscard]] std::string StateOfWork() const {
    std::string text = RunFactsJson(facts_);
    for (const auto* list : {&options_.plan.white_list, &options_.plan.black_list}) {
      text += json::RecordText(*list);
    }
    return DigestOfText(text + options_.error_data_path);
  }

  // What parts say, and where they ran, which must be the same. kInvalidArgument, kCorrupt.
  Result<std::vector<PartNote>> TakeNotes(const std::vector<std::string>& texts) {
    std::vector<PartNote> notes(texts.size());
    std::optional<size_t> first;
    std::string where;
    for (size_t i = 0; i < texts.size(); ++i) {
      const Result<json::Value> value = json::Value::Parse(texts[i]);
      if (!value || !json::ReadRecord(*value, notes[i])) return DamagedParts();
      if (notes[i].framework_version.empty()) continue;
      const std::string here = PlaceText(plan_.framework(), notes[i], form_.runs_device);
      if (!first) {
        first = i;
        where = here;
        LearnDevice(notes[i].framework_version, notes[i].device, notes[i].device_name);
      } else if (here != where) {
        return Error(
            ErrorCode::kInvalidArgument,
            fmt::format("{}: its calls ran in different places (shard {}: {}; shard {}: {}). Run "
                        "all shards with one framework on one kind of device, named by "
                        "--device_type",
                        plan_.path(), *first, where, i, here));
      }
    }
    return notes;
  }

  [[nodiscard]] Error DamagedParts() const {
    return {ErrorCode::kCorrupt,
            fmt::format("{}: its shards are damaged. Run them again", plan_.path())};
  }

  plumbline::Status RecordItems(const std::vector<json::Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      CallOutcome outcome;
      const bool is_good =
          json::ReadRecord(items[i], outcome) && outcome.name == plan_.call(i).name;
      if (!is_good) return DamagedParts();
      PL_TRY(Record(i, std::move(outcome)));
    }
    return {};
  }

  // What parts kept, to where one run keeps it.
  void TakeKept(const std::vector<PartNote>& notes) {
    bool has_saved = false;
    std::string problem;
    for (size_t i = 0; i < notes.size(); ++i) {
      has_saved = has_saved || notes[i].has_saved;
      if (problem.empty()) problem = notes[i].problem;
      if (!notes[i].has_files) continue;
      const plumbline::Status taken = TakePart({i, notes.size()});
      if (!taken && problem.empty()) problem = taken.error().message();
    }
    TellKept(has_saved ? KeptDirectory() : "", std::move(problem));
  }

  plumbline::Status TakePart(const ShardPlace& place) const {
    PL_TRY_ASSIGN(const std::string part,
                  PartDirectory(form_.part_data, options_.output_dir, place));
    if (KindOf(part) != PathKind::kMissing) return form_.take(part, KeptDirectory());
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: is not there any more (an earlier plumb merge takes it away). Run "
                    "shard {} again",
                    part, place.index));
  }

  const PrecheckOptions& options_;
  const Plan& plan_;
  NameTable places_;
  const CheckedCalls& calls_;
  const RecordingForm form_;
  std::string device_type_;  // of the options, or of the earlier run
  RunFacts facts_;
  std::string server_device_;  // what the interpreter calls it
  bool any_judged_ = false;
  std::optional<ShardPart> part_;
  std::vector<bool> is_mine_;  // calls of the part; empty: all
  std::optional<KeepingCalls> keeping_;
  std::string kept_problem_;
  std::optional<ResultFiles> files_;
  PrecheckReport report_;
  uint64_t done_ = 0, to_do_ = 0;
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

Result<PrecheckReport> RunMindSpore(const PrecheckOptions& options, const WorkShare& share) {
  PL_TRY_ASSIGN(const MindSporePlan plan,
                MindSporePlan::Open(options.dump_json, options.plan.seed));
  MindSporeLimits limits;
  limits.max_abs_error = options.max_abs_error;
  const MindSporeCheck calls(plan, limits);
  RecordingForm form;
  form.part_data = JoinPath(options.output_dir, "error_data");
  std::string output = options.output_dir;
  if (share.place != nullptr) {
    PL_TRY_ASSIGN(output, PartDirectory(form.part_data, options.output_dir, *share.place));
    PL_TRY(MindSporeErrorData::RemovePart(output));
  }
  MindSporeErrorData kept(output, plan.framework());
  form.files = ResultForm::kMindSpore;
  // What was recorded is judged without MindSpore, which need not be there then.
  form.executors = plan.uses_recorded_data() ? "native_torch" : plan.framework();
  form.error_data = kept.directory();
  form.has_timestamp = false;
  form.runs_device = !plan.uses_recorded_data();
  form.save = [&](const std::string&, const RanCall& ran, const CallOutcome& outcome) {
    return kept.Add(ran, outcome);
  };
  form.take = [&](const std::string& part, const std::string&) { return kept.TakePart(part); };
  PL_TRY_ASSIGN(PrecheckReport report, Precheck(options, plan, calls, std::move(form)).Do(share));
  PL_TRY(kept.Finish());
  return report;
}

Result<PrecheckReport> RunTorch(const PrecheckOptions& options, const WorkShare& share) {
  PL_TRY_ASSIGN(const CallPlan plan, CallPlan::Open(options.dump_json, options.plan));
  const std::string& framework = plan.framework();
  // Said behind the entries, or by their tensors alone.
  const bool is_mindspore = IsMindSpore(LowerCase(framework)) || LowerCase(framework) == "ms";
  if (is_mindspore && options.framework != "pytorch") return RunMindSpore(options, share);
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
  form.part_data = form.error_data;
  form.take = TakePartFiles;
  if (share.place != nullptr) {
    PL_TRY_ASSIGN(const std::string part,
                  PartDirectory(form.part_data, options.output_dir, *share.place));
    PL_TRY(RemoveDirectory(part));
  }
  return Precheck(options, plan, calls, std::move(form)).Do(share);
}

Result<PrecheckReport> RunShare(const PrecheckOptions& options, const WorkShare& share) {
  PL_TRY_ASSIGN(const std::string recorded, FrameworkOf(options.dump_json));
  // Without a word in the file, upstream's -f tells.
  const bool is_mindspore =
      IsMindSpore(recorded) || (recorded.empty() && options.framework == "mindspore");
  const bool is_expected = options.framework.empty() || recorded.empty() ||
                           (options.framework == "mindspore") == is_mindspore;
  if (!is_expected) return OtherFramework(options, recorded, options.framework);
  return is_mindspore ? RunMindSpore(options, share) : RunTorch(options, share);
}

}  // namespace

Result<PrecheckReport> RunPrecheck(const PrecheckOptions& options) { return RunShare(options, {}); }

Result<ShardPart> RunPrecheckPart(const PrecheckOptions& options, const ShardPlace& place) {
  ShardPart part;
  PL_TRY(RunShare(options, {.place = &place, .part = &part}));
  return part;
}

Result<PrecheckReport> MergePrecheck(const PrecheckOptions& options, const ShardedItems& parts) {
  return RunShare(options, {.parts = &parts});
}

}  // namespace plumbline::precheck
