#include "precheck/call_flow.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "precheck/input_data.h"

namespace plumbline::precheck {
namespace {

// How often a stop is looked for while nothing happens.
constexpr std::chrono::milliseconds kTick{200};
// Inputs that are filled where the call is made ready: nothing else has to wait for them.
constexpr size_t kInputsFilledAhead = size_t{1} << 20;
// What a call needs beside its inputs: raised copies, results of both sides, gradients.
constexpr uint64_t kMemoryPerInput = 12;
constexpr uint64_t kLeastInputBytes = uint64_t{64} << 20;

// Threads that run jobs, and a descriptor that can be read once one of them is done.
class Workers {
 public:
  static Result<std::unique_ptr<Workers>> Start(size_t threads) {
    const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) return ErrnoError(errno, "eventfd", "make a descriptor");
    auto workers = std::make_unique<Workers>(wake);
    for (size_t i = 0; i < threads; ++i) {
      workers->threads_.emplace_back([raw = workers.get()] { raw->Run(); });
    }
    return workers;
  }

  explicit Workers(int wake) : wake_(wake) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    {
      const std::scoped_lock lock(mutex_);
      jobs_.clear();
      ends_ = true;
    }
    changed_.notify_all();
    threads_.clear();
    ::close(wake_);
  }

  // `done` runs on the thread that calls TakeDone(), after `job`.
  void Add(std::function<void()> job, std::function<void()> done) {
    {
      const std::scoped_lock lock(mutex_);
      jobs_.emplace_back(std::move(job), std::move(done));
    }
    changed_.notify_one();
  }

  std::vector<std::function<void()>> TakeDone() {
    uint64_t count = 0;
    (void)!::read(wake_, &count, sizeof(count));
    const std::scoped_lock lock(mutex_);
    return std::exchange(done_, {});
  }

  [[nodiscard]] int wake() const { return wake_; }

 private:
  void Run() {
    for (;;) {
      std::pair<std::function<void()>, std::function<void()>> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
        if (ends_) return;
        work = std::move(jobs_.front());
        jobs_.pop_front();
      }
      work.first();
      bool is_first = false;
      {
        const std::scoped_lock lock(mutex_);
        is_first = done_.empty();
        done_.push_back(std::move(work.second));
      }
      const uint64_t one = 1;
      if (is_first) (void)!::write(wake_, &one, sizeof(one));
    }
  }

  const int wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs_;
  std::vector<std::function<void()>> done_;
  bool ends_ = false;
  std::vector<std::jthread> threads_;  // last: joined before the rest is gone
};

uint64_t MostInputBytes(const FlowOptions& options) {
  if (options.most_input_bytes > 0) return options.most_input_bytes;
  struct sysinfo facts {};
  if (::sysinfo(&facts) != 0) return kLeastInputBytes;
  const uint64_t all = uint64_t{facts.totalram} * facts.mem_unit;
  return std::max(kLeastInputBytes, all / kMemoryPerInput);
}

// What becomes of one call, in one slot. Between the stages it belongs to the calling thread.
struct Flight {
  size_t index = 0, slot = 0;
  std::optional<CallToRun> to_run;
  std::span<std::byte> inputs;
  bool is_filled = false;
  std::array<std::optional<SideResult>, 2> sides;
  std::optional<CallOutcome> outcome;
};

class Flow {
 public:
  Flow(const CheckedCalls& calls, const std::vector<size_t>& order, ExecutorPool& pool,
       const FlowOptions& options)
      : calls_(calls), order_(order), pool_(pool), most_input_bytes_(MostInputBytes(options)) {
    flights_.resize(pool.slots());
    for (size_t slot = pool.slots(); slot-- > 0;) free_.push_back(slot);
  }

  Result<FlowEnd> Run(const FlowOptions& options, const RecordOutcome& record) {
    const size_t cores = std::max(1U, std::thread::hardware_concurrency());
    PL_TRY_ASSIGN(workers_, Workers::Start(options.threads > 0 ? options.threads : cores));
    FlowEnd end;
    // Inputs are made while the framework is loaded.
    TakeCalls();
    PL_TRY_ASSIGN(end.facts, pool_.AwaitReady());
    if (options.on_ready) PL_TRY(options.on_ready(end.facts));
    while (done_ < order_.size()) {
      if (options.is_stopped && options.is_stopped()) {
        end.was_stopped = true;
        break;
      }
      TakeCalls();
      PL_TRY_ASSIGN(std::vector<SideAnswer> answers, pool_.Wait(workers_->wake(), kTick));
      for (SideAnswer& answer : answers) TakeAnswer(std::move(answer));
      PL_TRY(TakeDone(record));
    }
    if (end.was_stopped) PL_TRY(RecordJudged(record));
    return end;
  }

 private:
  // As many calls as there are slots.
  void TakeCalls() {
    while (!free_.empty() && next_ < order_.size()) {
      const size_t slot = free_.back();
      free_.pop_back();
      Flight& flight = *(flights_[slot] = std::make_unique<Flight>());
      flight.index = order_[next_++];
      flight.slot = slot;
      workers_->Add([this, &flight] { MakeReady(flight); }, [this, &flight] { Admit(flight); });
    }
  }

  // On a worker.
  void MakeReady(Flight& flight) const {
    OrSkip<CallToRun> to_run = calls_.Prepare(flight.index);
    if (!to_run) {
      flight.outcome = calls_.Skipped(flight.index, to_run.error());
      return;
    }
    flight.to_run = *std::move(to_run);
    if (flight.to_run->call.input_bytes <= kInputsFilledAhead) Fill(flight);
  }

  // On a worker.
  void Fill(Flight& flight) const {
    const PreparedCall& call = flight.to_run->call;
    const Result<std::span<std::byte>> inputs = pool_.Inputs(flight.slot, call.input_bytes);
    if (!inputs) {
      flight.outcome = calls_.Skipped(
          flight.index,
          {SkipCause::kOutOfMemory,
           fmt::format("{} bytes of inputs: {}", call.input_bytes, inputs.error().message())});
      return;
    }
    flight.inputs = *inputs;
    const auto filled = FillInputs(call, *inputs);
    if (!filled) flight.outcome = calls_.Skipped(flight.index, filled.error());
    flight.is_filled = true;
  }

  // The call is known; where its inputs are large they wait for room.
  void Admit(Flight& flight) {
    if (flight.outcome || flight.is_filled) return Submit(flight);
    waiting_.push_back(&flight);
    AdmitWaiting();
  }

  void AdmitWaiting() {
    while (!waiting_.empty()) {
      Flight& flight = *waiting_.front();
      const uint64_t bytes = flight.to_run->call.input_bytes;
      if (input_bytes_ > 0 && input_bytes_ + bytes > most_input_bytes_) return;
      waiting_.pop_front();
      input_bytes_ += bytes;
      workers_->Add([this, &flight] { Fill(flight); }, [this, &flight] { Submit(flight); });
    }
  }

  void Submit(Flight& flight) {
    if (flight.outcome) {
      ready_.push_back(&flight);
      return;
    }
    const PreparedCall& call = flight.to_run->call;
    pool_.Submit(flight.slot, {RequestText(call), call.input_bytes, flight.to_run->runs_device});
  }

  void TakeAnswer(SideAnswer answer) {
    Flight& flight = *flights_[answer.slot];
    flight.sides[static_cast<size_t>(answer.role)] = std::move(answer.result);
    const bool is_whole = flight.sides[0] && (flight.sides[1] || !flight.to_run->runs_device);
    if (!is_whole) return;
    workers_->Add([this, &flight] { Judge(flight); },
                  [this, &flight] { ready_.push_back(&flight); });
  }

  // On a worker.
  void Judge(Flight& flight) const {
    RanCall ran;
    ran.index = flight.index;
    ran.to_run = &*flight.to_run;
    ran.inputs = flight.inputs;
    ran.bench = &*flight.sides[0];
    ran.bench_memory = pool_.Results(flight.slot, Role::kBench);
    if (flight.sides[1]) {
      ran.device = &*flight.sides[1];
      ran.device_memory = pool_.Results(flight.slot, Role::kDevice);
    }
    flight.outcome = calls_.Judge(ran);
    pool_.Clear(flight.slot);
  }

  plumbline::Status TakeDone(const RecordOutcome& record) {
    for (const auto& done : workers_->TakeDone()) done();
    return RecordReady(record);
  }

  plumbline::Status RecordReady(const RecordOutcome& record) {
    for (Flight* flight : std::exchange(ready_, {})) {
      PL_TRY(record(flight->index, *std::move(flight->outcome)));
      ++done_;
      Release(*flight);
    }
    AdmitWaiting();
    return {};
  }

  void Release(Flight& flight) {
    const bool was_admitted = flight.to_run && flight.to_run->call.input_bytes > kInputsFilledAhead;
    if (was_admitted) input_bytes_ -= flight.to_run->call.input_bytes;
    const size_t slot = flight.slot;
    flights_[slot].reset();
    free_.push_back(slot);
  }

  // What the workers judge at this moment is not thrown away.
  plumbline::Status RecordJudged(const RecordOutcome& record) {
    workers_.reset();
    for (const auto& flight : flights_) {
      const bool is_judged = flight && flight->outcome;
      if (is_judged) PL_TRY(record(flight->index, *std::move(flight->outcome)));
    }
    return {};
  }

  const CheckedCalls& calls_;
  const std::vector<size_t>& order_;
  ExecutorPool& pool_;
  const uint64_t most_input_bytes_;
  std::vector<std::unique_ptr<Flight>> flights_;  // by slot
  std::vector<size_t> free_;
  std::deque<Flight*> waiting_;       // for room
  std::vector<Flight*> ready_;        // with an outcome
  uint64_t input_bytes_ = 0;          // of calls that were admitted
  size_t next_ = 0, done_ = 0;        // of order_
  std::unique_ptr<Workers> workers_;  // last: its threads use the rest
};

}  // namespace

Result<FlowEnd> RunCalls(const CheckedCalls& calls, const std::vector<size_t>& order,
                         ExecutorPool& pool, const FlowOptions& options,
                         const RecordOutcome& record) {
  return Flow(calls, order, pool, options).Run(options, record);
}

std::string RequestText(const PreparedCall& call) {
  std::string text = "\"name\":";
  json::AppendString(call.name, text);
  text += ",\"type\":";
  json::AppendString(call.type, text);
  text += ",\"api\":";
  json::AppendString(call.api, text);
  text += ",\"args\":[";
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (i > 0) text += ',';
    AppendJson(call.args[i], text);
  }
  text += "],\"kwargs\":";
  AppendJson(call.kwargs, text);
  text += ",\"grads\":";
  if (call.grads) {
    text += '[';
    for (size_t i = 0; i < call.grads->size(); ++i) {
      if (i > 0) text += ',';
      AppendJson((*call.grads)[i], text);
    }
    text += ']';
  } else {
    text += "null";
  }
  text += call.autocast ? fmt::format(",\"autocast\":\"{}\"", InfoOf(*call.autocast).name)
                        : std::string(",\"autocast\":null");
  if (call.wants_node_gradients) text += ",\"node_gradients\":true";
  text += '}';
  return text;
}

}  // namespace plumbline::precheck
