#include "precheck/executor_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/file_bytes.h"

namespace plumbline::precheck {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long a process that was killed may take to go; one that waits for a broken device may never.
constexpr std::chrono::seconds kEndGrace{5};
// Executors that end before they are ready, one after the other.
constexpr int kMostFailedStarts = 3;
constexpr int kMostRestarts = 1;
// A longer line is no answer: tensors are not in it.
constexpr size_t kLongestLine = size_t{64} << 20;
// A call waits behind another one in the executor only where that costs nothing.
constexpr size_t kSmallCallInputs = size_t{256} << 10;
constexpr milliseconds kShortCall{20};
// Memory of a slot that is kept for its next call.
constexpr size_t kKeptBytes = size_t{16} << 20;

// Places among the descriptors that are waited for; the first one is the caller's.
constexpr size_t kServerPolled = 1, kExecutorsPolled = 2;

constexpr int kSides = 2;
size_t IndexOf(Role role) { return static_cast<size_t>(role); }

struct Slot {
  SharedBytes inputs;
  std::array<SharedBytes, kSides> results;
  std::array<std::span<const std::byte>, kSides> mapped;
  std::span<std::byte> inputs_mapped;
  size_t input_size = 0;  // of which there is memory
  std::string request;
  bool is_small = false;
  // What was tried before a side is given up: after a crash another executor, after a lack of
  // memory an executor that has the device for itself.
  std::array<bool, kSides> was_repeated{}, was_alone{};
};

struct CallInFlight {
  uint64_t id = 0;
  size_t slot = 0;
};

enum class State : uint8_t { kStarting, kReady, kEnding };

struct Executor {
  uint64_t id = 0;
  Role role = Role::kBench;
  std::string device;
  int socket = -1;
  pid_t process = 0;
  State state = State::kStarting;
  std::string out, in;
  size_t sent = 0;                 // of `out`
  size_t searched = 0;             // of `in`: there is no line end
  std::deque<CallInFlight> calls;  // the first one runs
  bool runs_alone = false;
  Clock::time_point since;      // when it was started, its first call began, or it was told to end
  std::optional<Skip> verdict;  // kEnding: what becomes of its first call

  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() {
    if (socket >= 0) ::close(socket);
  }
};

struct Side {
  std::vector<std::string> devices;
  int limit = 1;
  std::deque<size_t> waiting;
  // Slots that need a device for themselves, and which.
  std::deque<std::pair<size_t, std::string>> alone;
  bool was_ready = false;
  int failed_starts = 0;
  std::string start_error;  // what the last one of them said
};

// Two descriptors of each memory are open while the interpreter is started.
void AllowDescriptors(size_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  limit.rlim_cur =
      limit.rlim_max == RLIM_INFINITY ? count : std::min<rlim_t>(count, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

SkipCause FailureOf(Role role) {
  return role == Role::kBench ? SkipCause::kCpuFailed : SkipCause::kDeviceFailed;
}

SideResult Skipped(Skip skip) {
  return {.forward = tl::make_unexpected(std::move(skip)), .backward = std::nullopt};
}

bool LacksMemory(const SideResult& result) {
  const auto lacks = [](const SideValue& value) {
    return !value && value.error().cause == SkipCause::kOutOfMemory;
  };
  return lacks(result.forward) || (result.backward && lacks(*result.backward));
}

}  // namespace

class ExecutorPool::Impl {
 public:
  explicit Impl(const PoolOptions& options) : options_(options), slots_(options.slots) {}

  plumbline::Status Launch() {
    std::vector<const SharedBytes*> memory;
    for (const Slot& slot : slots_) {
      memory.insert(memory.end(), {&slot.inputs, &slot.results[0], &slot.results[1]});
    }
    const ServerStart start{options_.framework, options_.device_type, slots_.size()};
    PL_TRY_ASSIGN(server_, ExecutorServer::Launch(options_.program, start, memory));
    return {};
  }

  plumbline::Status MakeMemory() {
    AllowDescriptors(6 * slots_.size() + 256);
    for (Slot& slot : slots_) {
      PL_TRY_ASSIGN(slot.inputs, SharedBytes::CreateGrowing());
      for (SharedBytes& one : slot.results) {
        PL_TRY_ASSIGN(one, SharedBytes::CreateGrowing());
      }
    }
    return {};
  }

  Result<ServerFacts> AwaitReady() {
    PL_TRY_ASSIGN(ServerFacts facts, server_.AwaitReady());
    Side& bench = sides_[IndexOf(Role::kBench)];
    Side& device = sides_[IndexOf(Role::kDevice)];
    bench.devices = {"cpu"};
    bench.limit = std::max(1, options_.bench_workers);
    device.limit = std::max(1, options_.device_workers);
    device.devices.clear();
    for (const int number : options_.devices) {
      device.devices.push_back(facts.device == "cpu" ? facts.device
                                                     : fmt::format("{}:{}", facts.device, number));
    }
    return facts;
  }

  // The same; asked again, what it said then.
  Result<ServerFacts> AwaitFirst() {
    if (!facts_) {
      PL_TRY_ASSIGN(facts_, AwaitReady());
    }
    return *facts_;
  }

  std::vector<Slot>& slots() { return slots_; }

  void Submit(size_t slot, SubmittedCall call) {
    Slot& one = slots_[slot];
    one.request = std::move(call.request);
    one.is_small = call.input_bytes <= kSmallCallInputs;
    one.was_repeated = one.was_alone = {};
    sides_[IndexOf(Role::kBench)].waiting.push_back(slot);
    if (call.runs_device) sides_[IndexOf(Role::kDevice)].waiting.push_back(slot);
  }

  Result<std::vector<SideAnswer>> Wait(int wake, milliseconds at_most) {
    PL_TRY(HandOut());
    Poll(wake, answers_.empty() ? std::min(at_most, UntilDeadline()) : milliseconds(0));
    // Before the ends are heard of: an answer may have been the last that an executor said.
    for (size_t i = 0; i < executors_.size(); ++i) {
      if (polled_[kExecutorsPolled + i].revents != 0) PL_TRY(Serve(*executors_[i]));
    }
    if (!server_.is_running() || polled_[kServerPolled].revents != 0) PL_TRY(HearServer());
    PL_TRY(EndLate());
    return std::exchange(answers_, {});
  }

 private:
  // --- Handing out ---------------------------------------------------------------------------

  plumbline::Status HandOut() {
    for (const Role role : {Role::kBench, Role::kDevice}) {
      PL_TRY(HandOutAlone(role));
      for (const size_t depth : {size_t{0}, size_t{1}}) HandOutAt(role, depth);
      PL_TRY(MakeExecutors(role));
    }
    return {};
  }

  // The device that a call waits to have for itself; null: none.
  const std::string* ReservedOf(Role role) const {
    const Side& side = sides_[IndexOf(role)];
    return side.alone.empty() ? nullptr : &side.alone.front().second;
  }

  static bool IsOn(const Executor& executor, Role role, const std::string* device) {
    return executor.role == role && device != nullptr && executor.device == *device;
  }

  void HandOutAt(Role role, size_t depth) {
    Side& side = sides_[IndexOf(role)];
    for (const auto& executor : executors_) {
      if (side.waiting.empty()) return;
      const bool is_free = executor->role == role && executor->state == State::kReady &&
                           executor->calls.size() == depth && !executor->runs_alone &&
                           !IsOn(*executor, role, ReservedOf(role));
      if (!is_free || (depth > 0 && !MayQueueBehind(*executor))) continue;
      Send(*executor, side.waiting.front());
      side.waiting.pop_front();
    }
  }

  bool MayQueueBehind(const Executor& executor) const {
    return slots_[executor.calls.front().slot].is_small &&
           Clock::now() - executor.since < kShortCall;
  }

  // The first call that needs a device for itself, once nothing else runs there.
  plumbline::Status HandOutAlone(Role role) {
    Side& side = sides_[IndexOf(role)];
    if (side.alone.empty()) return {};
    const auto& [slot, device] = side.alone.front();
    Executor* chosen = nullptr;
    int others = 0;
    for (const auto& executor : executors_) {
      if (!IsOn(*executor, role, &device)) continue;
      if (!executor->calls.empty() || executor->state != State::kReady) {
        ++others;
      } else if (chosen == nullptr) {
        chosen = executor.get();
      } else {
        // An idle one keeps memory of the device.
        Retire(*executor);
        ++others;
      }
    }
    if (others > 0) return {};
    if (chosen == nullptr) return Fork(role, device);
    chosen->runs_alone = true;
    Send(*chosen, slot);
    side.alone.pop_front();
    return {};
  }

  // As many as there are calls that nobody runs.
  plumbline::Status MakeExecutors(Role role) {
    Side& side = sides_[IndexOf(role)];
    size_t starting = 0;
    int all = 0;
    for (const auto& executor : executors_) {
      if (executor->role != role) continue;
      ++all;
      starting += executor->state == State::kStarting ? 1 : 0;
    }
    for (; side.waiting.size() > starting && all < side.limit; ++all, ++starting) {
      const std::string* const device = EmptiestDevice(role);
      if (device == nullptr) return {};
      PL_TRY(Fork(role, *device));
    }
    return {};
  }

  const std::string* EmptiestDevice(Role role) const {
    const std::string* best = nullptr;
    int64_t fewest = 0;
    for (const std::string& device : sides_[IndexOf(role)].devices) {
      if (ReservedOf(role) != nullptr && *ReservedOf(role) == device) continue;
      const auto count = std::ranges::count_if(
          executors_, [&](const auto& executor) { return IsOn(*executor, role, &device); });
      if (best != nullptr && count >= fewest) continue;
      best = &device;
      fewest = count;
    }
    return best;
  }

  plumbline::Status Fork(Role role, const std::string& device) {
    auto executor = std::make_unique<Executor>();
    executor->id = ++last_executor_;
    executor->role = role;
    executor->device = device;
    executor->since = Clock::now();
    const Result<int> socket =
        server_.Fork({executor->id, role, device, std::max(1, options_.threads)});
    if (!socket) return Restart(socket.error());
    executor->socket = *socket;
    (void)::fcntl(*socket, F_SETFL, O_NONBLOCK);
    executors_.push_back(std::move(executor));
    return {};
  }

  void Send(Executor& executor, size_t slot) {
    if (executor.calls.empty()) executor.since = Clock::now();
    executor.calls.push_back({++last_call_, slot});
    executor.out += fmt::format("{{\"id\":{},\"slot\":{},", last_call_, slot);
    executor.out += slots_[slot].request;
    executor.out += '\n';
    Flush(executor);
  }

  // What its socket takes at once. That it has ended is found out where it is read from.
  static void Flush(Executor& executor) {
    while (executor.sent < executor.out.size()) {
      const ssize_t sent = ::send(executor.socket, executor.out.data() + executor.sent,
                                  executor.out.size() - executor.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return;
      executor.sent += static_cast<size_t>(sent);
    }
    executor.out.clear();
    executor.sent = 0;
  }

  // --- Listening -----------------------------------------------------------------------------

  void Poll(int wake, milliseconds limit) {
    polled_.clear();
    polled_.push_back({wake, POLLIN, 0});
    polled_.push_back({server_.is_running() ? server_.socket() : -1, POLLIN, 0});
    for (const auto& executor : executors_) {
      // One whose end is waited for has nothing to say any more.
      const bool ends = executor->state == State::kEnding;
      const auto events = static_cast<int16_t>(executor->out.empty() ? POLLIN : POLLIN | POLLOUT);
      polled_.push_back({ends ? -1 : executor->socket, events, 0});
    }
    (void)::poll(polled_.data(), polled_.size(), static_cast<int>(limit.count()));
  }

  [[nodiscard]] milliseconds UntilDeadline() const {
    milliseconds shortest = std::chrono::hours(1);
    for (const auto& executor : executors_) {
      const auto left = std::chrono::ceil<milliseconds>(DeadlineOf(*executor) - Clock::now());
      shortest = std::min(shortest, std::max(left, milliseconds(0)));
    }
    return shortest;
  }

  [[nodiscard]] Clock::time_point DeadlineOf(const Executor& executor) const {
    if (executor.state == State::kStarting) return executor.since + options_.program.start_limit;
    if (executor.state == State::kEnding) return executor.since + kEndGrace;
    if (executor.calls.empty()) return Clock::now() + std::chrono::hours(1);
    return executor.since + options_.call_limit;
  }

  // Takes what an executor has said.
  plumbline::Status Serve(Executor& executor) {
    if (executor.state == State::kEnding) return {};
    Flush(executor);
    char buffer[16384];
    for (;;) {
      const ssize_t got = ::recv(executor.socket, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
      if (got <= 0) break;
      executor.in.append(buffer, static_cast<size_t>(got));
      PL_TRY(TakeLines(executor));
      if (executor.state == State::kEnding) return {};
      if (executor.in.size() > kLongestLine) {
        Condemn(executor, {FailureOf(executor.role), "an answer without an end"});
        return {};
      }
      if (static_cast<size_t>(got) < sizeof(buffer)) return {};  // there was no more
    }
    // It closed its channel: the server will say how it ended.
    executor.state = State::kEnding;
    executor.since = Clock::now();
    return {};
  }

  plumbline::Status TakeLines(Executor& executor) {
    size_t begin = 0, end = executor.in.find('\n', executor.searched);
    for (; end != std::string::npos; end = executor.in.find('\n', begin)) {
      const std::string_view line(executor.in.data() + begin, end - begin);
      if (executor.state == State::kStarting) {
        PL_TRY(TakeHello(executor, line));
      } else if (executor.state == State::kReady) {
        TakeAnswer(executor, line);
      }
      begin = end + 1;
    }
    executor.in.erase(0, begin);
    executor.searched = executor.in.size();
    return {};
  }

  plumbline::Status TakeHello(Executor& executor, std::string_view line) {
    Side& side = sides_[IndexOf(executor.role)];
    Result<ExecutorHello> hello = ParseHello(line);
    if (!hello) {
      side.start_error = hello.error().message();
      // A device that never worked is no use; one that a call brought down may come back.
      if (!side.was_ready) return hello.error().In(executor.device);
      Retire(executor);
      return {};
    }
    const auto process = static_cast<pid_t>(hello->process);
    // It is to be killed if it hangs, and nothing else is.
    if (process <= 1 || ::getpgid(process) != server_.group()) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: an executor says it is process {}, which the Python "
                               "interpreter did not make",
                               executor.device, hello->process));
    }
    executor.process = process;
    executor.state = State::kReady;
    side.was_ready = true;
    side.failed_starts = 0;
    return {};
  }

  void TakeAnswer(Executor& executor, std::string_view line) {
    Result<ExecutorAnswer> answer = ParseAnswer(line);
    const SkipCause cause = FailureOf(executor.role);
    if (!answer) return Condemn(executor, {cause, answer.error().message()});
    if (executor.calls.empty() || answer->id != executor.calls.front().id) {
      return Condemn(executor, {cause, "an answer of an executor: to another call"});
    }
    plumbline::Status checked =
        MapResult(slots_[executor.calls.front().slot], executor.role, answer->result);
    if (!checked) return Condemn(executor, {cause, checked.error().message()});
    const size_t number = executor.calls.front().slot;
    executor.calls.pop_front();
    executor.since = Clock::now();
    executor.runs_alone = false;
    Deliver(number, executor, std::move(answer->result));
    if (answer->is_last) {
      TakeBack(executor, 0);
      executor.state = State::kEnding;
    }
  }

  // Makes the memory of a side so large here as its result says that it is.
  static plumbline::Status MapResult(Slot& slot, Role role, const SideResult& result) {
    std::span<const std::byte>& mapped = slot.mapped[IndexOf(role)];
    if (CheckPlaces(result, mapped.size())) return {};
    PL_TRY_ASSIGN(mapped, slot.results[IndexOf(role)].Map());
    return CheckPlaces(result, mapped.size());
  }

  // Calls that an executor has not begun wait again, those from `first` on.
  void TakeBack(Executor& executor, size_t first) {
    Side& side = sides_[IndexOf(executor.role)];
    for (; executor.calls.size() > first; executor.calls.pop_back()) {
      side.waiting.push_front(executor.calls.back().slot);
    }
  }

  // A side that lacked memory is tried once more where nothing else takes any.
  void Deliver(size_t slot, const Executor& executor, SideResult result) {
    const size_t side = IndexOf(executor.role);
    if (LacksMemory(result) && !slots_[slot].was_alone[side]) {
      slots_[slot].was_alone[side] = true;
      sides_[side].alone.emplace_back(slot, executor.device);
      return;
    }
    answers_.push_back({slot, executor.role, std::move(result)});
  }

  // --- Ends ----------------------------------------------------------------------------------

  plumbline::Status HearServer() {
    for (;;) {
      Result<std::optional<ExecutorEnd>> end = server_.TakeEnd();
      if (!end) return Restart(end.error());
      if (!end->has_value()) return {};
      const auto at = std::ranges::find_if(
          executors_, [&](const auto& executor) { return executor->id == (*end)->id; });
      if (at == executors_.end()) continue;
      // Its last answer may have come after it was looked at.
      PL_TRY(Serve(**at));
      PL_TRY(Finish(*at->get(), (*end)->how));
    }
  }

  // Kills an executor because of its first call.
  void Condemn(Executor& executor, Skip verdict) {
    executor.verdict = std::move(verdict);
    executor.state = State::kEnding;
    executor.since = Clock::now();
    if (executor.process > 0) ::kill(executor.process, SIGKILL);
  }

  // Lets an idle executor go.
  static void Retire(Executor& executor) {
    executor.state = State::kEnding;
    executor.since = Clock::now();
    ::shutdown(executor.socket, SHUT_RDWR);
  }

  plumbline::Status EndLate() {
    for (size_t i = executors_.size(); i-- > 0;) {
      Executor& executor = *executors_[i];
      if (Clock::now() < DeadlineOf(executor)) continue;
      if (executor.state == State::kEnding) {
        if (executor.process > 0) ::kill(executor.process, SIGKILL);
        PL_TRY(Finish(executor, "no word of its end"));
      } else if (executor.state == State::kReady) {
        const double seconds = std::chrono::duration<double>(options_.call_limit).count();
        Condemn(executor, {SkipCause::kTimeout, fmt::format("no answer within {} s", seconds)});
      } else {
        return Error(ErrorCode::kIo,
                     fmt::format("{}: an executor is not ready within {} s", executor.device,
                                 options_.program.start_limit.count()));
      }
    }
    return {};
  }

  // An executor is gone. Its first call gets what it deserves, the others wait again.
  plumbline::Status Finish(Executor& executor, const std::string& how) {
    Side& side = sides_[IndexOf(executor.role)];
    if (executor.process == 0 && ++side.failed_starts >= kMostFailedStarts) {
      return Error(ErrorCode::kIo,
                   fmt::format("{}: executors end before they are ready, the last one with {}{}{}",
                               executor.device, how, side.start_error.empty() ? "" : ": ",
                               side.start_error));
    }
    TakeBack(executor, 1);
    if (!executor.calls.empty()) Judge(executor, how);
    std::erase_if(executors_, [&](const auto& one) { return one.get() == &executor; });
    return {};
  }

  void Judge(const Executor& executor, const std::string& how) {
    const size_t number = executor.calls.front().slot, side = IndexOf(executor.role);
    Slot& slot = slots_[number];
    if (executor.verdict) return Deliver(number, executor, Skipped(*executor.verdict));
    // Who runs out of the machine's memory is killed by its kernel.
    if (how.find("signal 9") != std::string::npos) {
      return Deliver(
          number, executor,
          Skipped({SkipCause::kOutOfMemory, "the executor was killed (" + how +
                                                "), as by a system that runs out of memory"}));
    }
    if (!slot.was_repeated[side]) {
      // It may have died of what an earlier call left.
      slot.was_repeated[side] = true;
      sides_[side].waiting.push_front(number);
      return;
    }
    Deliver(number, executor, Skipped({SkipCause::kCrashed, "the executor ended with " + how}));
  }

  // The interpreter has ended, and with it all executors. None of their calls is to blame for sure.
  plumbline::Status Restart(const Error& error) {
    if (++restarts_ > kMostRestarts) {
      return Error(ErrorCode::kIo, error.message() + ", for the second time");
    }
    for (const auto& executor : executors_) TakeBack(*executor, 0);
    executors_.clear();
    PL_TRY(Launch());
    PL_TRY_ASSIGN(const ServerFacts facts, AwaitReady());
    return {};
  }

  PoolOptions options_;
  std::vector<Slot> slots_;
  ExecutorServer server_;
  std::optional<ServerFacts> facts_;
  std::array<Side, kSides> sides_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<pollfd> polled_;
  std::vector<SideAnswer> answers_;
  uint64_t last_executor_ = 0, last_call_ = 0;
  int restarts_ = 0;
};

ExecutorPool::ExecutorPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExecutorPool::~ExecutorPool() = default;

Result<std::unique_ptr<ExecutorPool>> ExecutorPool::Start(const PoolOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  PL_TRY(impl->MakeMemory());
  PL_TRY(impl->Launch());
  return std::unique_ptr<ExecutorPool>(new ExecutorPool(std::move(impl)));
}

Result<ServerFacts> ExecutorPool::AwaitReady() { return impl_->AwaitFirst(); }

size_t ExecutorPool::slots() const { return impl_->slots().size(); }

Result<std::span<std::byte>> ExecutorPool::Inputs(size_t slot, size_t bytes) {
  Slot& one = impl_->slots()[slot];
  if (bytes <= one.input_size) return one.inputs_mapped;
  PL_TRY(one.inputs.Grow(bytes));
  PL_TRY_ASSIGN(one.inputs_mapped, one.inputs.Map());
  one.input_size = bytes;
  return one.inputs_mapped;
}

std::span<const std::byte> ExecutorPool::Results(size_t slot, Role role) const {
  return impl_->slots()[slot].mapped[IndexOf(role)];
}

void ExecutorPool::Clear(size_t slot) {
  Slot& one = impl_->slots()[slot];
  // What cannot be given back is used by the next call.
  if (one.input_size > kKeptBytes) {
    (void)one.inputs.Clear();
    one.input_size = 0;
  }
  for (size_t i = 0; i < kSides; ++i) {
    if (one.mapped[i].size() > kKeptBytes) (void)one.results[i].Clear();
  }
}

void ExecutorPool::Submit(size_t slot, SubmittedCall call) { impl_->Submit(slot, std::move(call)); }

Result<std::vector<SideAnswer>> ExecutorPool::Wait(int wake, std::chrono::milliseconds at_most) {
  return impl_->Wait(wake, at_most);
}

}  // namespace plumbline::precheck
