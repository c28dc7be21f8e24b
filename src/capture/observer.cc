#include "capture/observer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/process/log.h"

namespace plumbline::capture {

uint32_t CallCounter::Register(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto [it, inserted] =
      ids_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  if (inserted) {
    names_.push_back(&it->first);
    counts_.push_back(0);
  }
  return it->second;
}

uint32_t CallCounter::Next(uint32_t id) {
  const std::lock_guard lock(mutex_);
  return counts_[id]++;
}

const std::string& CallCounter::NameOf(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return *names_[id];
}

void CallCounter::Reset() {
  const std::lock_guard lock(mutex_);
  std::fill(counts_.begin(), counts_.end(), 0);
}

namespace {

// Distinguishes process runs that write into the same directory one after the other.
std::string MakeRunId() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}-{}", std::chrono::duration_cast<std::chrono::microseconds>(now).count(),
                     getpid());
}

// Call numbers do not make a sentence a new one.
std::string WithoutNumbers(std::string_view sentence) {
  std::string text;
  for (const char c : sentence) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) text += c;
    if (is_digit && (text.empty() || text.back() != '#')) text += '#';
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Observer>> Observer::Create(Config config, std::string framework) {
  PL_TRY_ASSIGN(Selection selection, Selection::Create(config));
  if (config.online.is_on && framework != "pytorch") {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("tensor.online_run_ut: is not there for {} (expected PyTorch)",
                             framework));
  }
  return std::unique_ptr<Observer>(
      new Observer(std::move(config), std::move(framework), std::move(selection)));
}

Observer::Observer(Config config, std::string framework, Selection selection)
    : config_(std::move(config)),
      framework_(std::move(framework)),
      selection_(std::move(selection)),
      run_id_(MakeRunId()),
      threads_({.budget_bytes = config_.buffer_bytes,
                .max_bytes = config_.max_bytes,
                .min_free_bytes = config_.min_free_bytes}) {}

Observer::~Observer() { Close(); }

StartOutcome Observer::Start(std::optional<int> rank) {
  if (finished_) return StartOutcome::kNotSelected;
  if (is_done() || (config_.level != Level::kDebug && IsPastLastStep(config_, step_))) {
    finished_ = true;
    return StartOutcome::kFinished;
  }
  const bool debug = config_.level == Level::kDebug;
  if (!debug && !WantsStep(config_, step_)) return StartOutcome::kNotSelected;
  if (!WantsRank(config_, rank)) return StartOutcome::kNotSelected;
  if (config_.task == Task::kFreeBenchmark) {
    // No entries are recorded, and no file is there before there is something to say.
    run_directory_ = run_layout::RankDirectory(config_.dump_path, step_, rank);
    return StartOutcome::kCollecting;
  }
  if (writer_ == nullptr) {
    RunOptions options;
    options.header.task =
        config_.bench_path.empty() ? TaskName(config_.task) : std::string_view("diff_check");
    options.header.level = LevelName(config_.level);
    options.header.framework = framework_;
    options.dump_path = config_.dump_path;
    if (debug) {
      options.step.reset();
      options.files = EntryTable::Files::kDebug;
    } else {
      options.step = step_;
      if (!config_.extra_info) options.files = EntryTable::Files::kDumpOnly;
    }
    options.rank = rank;
    options.has_tensors = config_.task == Task::kTensor || config_.task == Task::kOverflowCheck ||
                          !config_.tensor_list.empty();
    options.run_id = run_id_;
    if (config_.online.is_on) {
      if (!OpenSender(rank)) return StartOutcome::kNotSelected;
      options.channel = sender_;
    }
    Result<std::unique_ptr<RunWriter>> opened = RunWriter::Open(options, threads_);
    if (!opened) {
      threads_.trouble.Report(
          Harm::kSteps, run_layout::RankDirectory(options.dump_path, options.step, options.rank),
          opened.error(),
          fmt::format("Step {} is not recorded, nor are later ones while this lasts", step_));
      // At level debug there is one file for all steps: every start() tries again.
      if (!debug) CountUnopenedStep(opened.error());
      return StartOutcome::kNotSelected;
    }
    last_record_.Drop();
    std::shared_ptr<RunWriter> writer = *std::move(opened);
    run_directory_ = writer->directory();
    const std::lock_guard lock(loss_mutex_);
    for (const Loss& loss : homeless_losses_) {
      writer->AddLoss(loss.counter, loss.count, loss.sentence);
    }
    homeless_losses_.clear();
    writer_ = std::move(writer);
  }
  // At level debug calls are not recorded, only what save() is given.
  is_collecting_.store(!debug, std::memory_order_relaxed);
  return StartOutcome::kCollecting;
}

bool Observer::TakeHit() {
  if (is_done()) return false;
  if (!config_.hit_limit) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  int64_t taken = hits();
  while (taken < *config_.hit_limit) {
    if (hits_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

bool Observer::TakeAside() {
  constexpr int64_t kMostAside = 100;
  return !config_.hit_limit || hits_aside_.fetch_add(1, std::memory_order_relaxed) < kMostAside;
}

Status Observer::SecureHit() {
  writer_->Secure();
  if (!config_.hit_limit || hits() < *config_.hit_limit) return {};
  if (is_done_.exchange(true)) return {};
  is_collecting_.store(false, std::memory_order_relaxed);
  const std::string_view what = config_.bench_path.empty() ? "overflow" : "difference";
  LogInfo(fmt::format("Reached the preset {} times, current {} times: {}.", what, what, hits()));
  return writer_->Publish();
}

bool Observer::OpenSender(std::optional<int> rank) {
  if (sender_ != nullptr || sender_failed_) return sender_ != nullptr;
  const OnlineConfig& online = config_.online;
  online::SenderOptions options;
  options.directory = online.directory;
  options.host = online.host;
  options.port = static_cast<int>(online.port);
  options.tls_directory = online.tls_path;
  options.rank = rank.value_or(0);
  options.framework = framework_;
  options.may_block = online.may_block;
  Result<std::shared_ptr<online::Sender>> sender = online::Sender::Open(options);
  sender_failed_ = !sender;
  if (sender_failed_) {
    LogLoss(fmt::format("online pre-check: {}. Nothing is checked; the training goes on",
                        sender.error().message()));
    return false;
  }
  sender_ = *std::move(sender);
  return true;
}

void Observer::Stop() {
  is_collecting_.store(false, std::memory_order_relaxed);
  if (writer_ == nullptr) return;
  const bool debug = config_.level == Level::kDebug;
  if (writer_->is_awaiting()) {
    return writer_->WhenComplete([this, writer = writer_](RunWriter& open) {
      ReportUnwritten(open.Publish(), open, false);
    });
  }
  if (config_.async_dump && !debug) {
    return WriteLater(writer_,
                      [this](RunWriter& open) { ReportUnwritten(open.Publish(), open, false); });
  }
  ReportUnwritten(debug ? writer_->PublishIfGrown() : writer_->Publish(), *writer_, false);
}

void Observer::ReportUnwritten(const Status& status, const RunWriter& writer, bool is_end) {
  if (status) return;
  if (is_end) {
    const std::lock_guard lock(loss_mutex_);
    ++unwritten_steps_;
    last_problem_ = status.error().message();
  }
  std::string_view what_now =
      "What this step recorded since its last stop() is lost unless a later stop() or step() can "
      "write it";
  if (is_end) {
    what_now =
        "What this step recorded since its last stop() is lost, but for what its journal "
        "has; dump_error_info.log counts it";
  }
  threads_.trouble.Report(
      Harm::kFiles, writer.directory(), status.error(),
      writer.failed() ? std::string(what_now)
                      : fmt::format("The journal keeps what was recorded: make room, then run "
                                    "`plumb recover {}`",
                                    writer.directory()));
}

// The directory before it says that this one is missing: it has the space for that.
void Observer::CountUnopenedStep(const Error& error) {
  const Loss loss{std::string(error_log::kStepsDropped), 1,
                  fmt::format("step {}: {}", step_, error.message())};
  const bool is_counted = last_record_.Add(loss);
  const std::lock_guard lock(loss_mutex_);
  ++unopened_steps_;
  last_problem_ = error.message();
  if (!is_counted) MergeLoss(homeless_losses_, loss);
  steps_are_counted_ = is_counted;
}

void Observer::FinishWriter(RunWriter& writer) {
  ReportUnwritten(writer.Finish(), writer, true);
  writer.HandOver(last_record_);
}

void Observer::FinishStep() {
  std::shared_ptr<RunWriter> writer;
  {
    const std::lock_guard lock(loss_mutex_);
    writer = std::move(writer_);
  }
  if (writer == nullptr) return;
  if (writer->is_awaiting()) {
    return writer->WhenComplete([this, writer](RunWriter& complete) { FinishWriter(complete); });
  }
  if (!config_.async_dump) return FinishWriter(*writer);
  WriteLater(std::move(writer), [this](RunWriter& finished) { FinishWriter(finished); });
}

void Observer::WriteLater(std::shared_ptr<RunWriter> writer,
                          std::function<void(RunWriter&)> write) {
  // A job that waits holds the entries of a whole step, and leaves one more to sync its files.
  constexpr size_t kMaxWaiting = 3;
  threads_.sync.WaitForAtMost(kMaxWaiting);
  const std::string key = "write " + writer->directory();
  threads_.sync.Submit(key,
                       [writer = std::move(writer), write = std::move(write)] { write(*writer); });
}

void Observer::Step() {
  const bool debug = config_.level == Level::kDebug;
  is_collecting_.store(false, std::memory_order_relaxed);
  debug ? Stop() : FinishStep();
  ++step_;
  ++epoch_;
  if (!debug) counters_.Reset();
}

void Observer::Close() {
  is_collecting_.store(false, std::memory_order_relaxed);
  FinishStep();
  constexpr uint64_t kAll = ~uint64_t{0};
  DropValues(0, kAll, "the process ended before their device had given them");
  threads_.sync.Drain();
  if (sender_ != nullptr) sender_->Close();
  ReportLostSteps();
  last_record_.Drop();
}

void Observer::AwaitValues(uint64_t number, RunWriter::LateTensor tensor) {
  writer_->AwaitValues(number, std::move(tensor));
  const std::lock_guard lock(late_mutex_);
  if (awaiting_.empty() || awaiting_.back() != writer_) awaiting_.push_back(writer_);
  late_changed_->notify_all();
}

bool Observer::AreAwaited(uint64_t first, uint64_t count) const {
  for (uint64_t number = first; number < first + count; ++number) {
    const bool is_awaited = std::ranges::any_of(
        awaiting_, [number](const auto& writer) { return writer->Awaited(number).has_value(); });
    if (!is_awaited) return false;
  }
  return true;
}

std::vector<std::shared_ptr<RunWriter>> Observer::AwaitingOf(uint64_t first, uint64_t count) {
  constexpr std::chrono::seconds kLongEnough{1};
  std::unique_lock lock(late_mutex_);
  std::erase_if(awaiting_, [](const auto& writer) { return !writer->is_awaiting(); });
  (void)late_changed_->wait_for(lock, kLongEnough, [&] { return AreAwaited(first, count); });
  return awaiting_;
}

void Observer::AddReduced(uint64_t first, std::span<const DeviceValues> values) {
  const bool has_digests = config_.summary_mode == SummaryMode::kDigest;
  const auto values_of = [&](uint64_t index, const RunWriter::LateTensor& tensor) {
    const DeviceValues& one = values[index];
    return LateValues{ComputeStats(tensor.dtype, one.moments, tensor.is_scalar),
                      has_digests ? PositionDigestHex(one.digest) : std::string()};
  };
  for (const std::shared_ptr<RunWriter>& writer : AwaitingOf(first, values.size())) {
    writer->AddValues(first, values.size(), values_of);
  }
}

void Observer::DropValues(uint64_t first, uint64_t count, std::string_view why) {
  for (const std::shared_ptr<RunWriter>& writer : AwaitingOf(0, 0)) {
    writer->DropValues(first, count, why);
  }
}

// Each trouble was said when it began; this says how long it lasted.
void Observer::ReportLostSteps() {
  const std::lock_guard lock(loss_mutex_);
  const uint64_t unopened = std::exchange(unopened_steps_, 0);
  const uint64_t unwritten = std::exchange(unwritten_steps_, 0);
  if (unopened < 2 && unwritten < 2) return;
  const std::string_view where =
      steps_are_counted_ ? ". dump_error_info.log in the last step before them counts them" : "";
  const auto steps = [](uint64_t count, std::string_view what) {
    return count == 0 ? ""
                      : fmt::format("{} step{} {}", count, count == 1 ? " was" : "s were", what);
  };
  std::string count = steps(unopened, "not recorded");
  if (unopened > 0 && unwritten > 0) count += ", ";
  count += steps(unwritten, "recorded only in part");
  LogLoss(fmt::format("{}: {} ({}){}", config_.dump_path, count, last_problem_, where));
}

void Observer::CountLoss(std::string_view counter, std::string_view what) {
  const std::lock_guard lock(loss_mutex_);
  if (writer_ != nullptr) {
    writer_->AddLoss(counter, 1, what);
  } else {
    MergeLoss(homeless_losses_, {std::string(counter), 1, std::string(what)});
  }
  if (!reported_.insert(WithoutNumbers(what)).second) return;
  LogWarning(fmt::format("not recorded: {} (further ones are only counted)", what));
}

}  // namespace plumbline::capture
