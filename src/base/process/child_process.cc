#include "base/process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"

namespace plumbline {

std::string ChildEnd::Text() const {
  return by_signal ? fmt::format("signal {} ({})", number, ::strsignal(number))
                   : fmt::format("exit status {}", number);
}

void AwaitEnd(pid_t child) {
  siginfo_t facts{};
  while (::waitid(P_PID, static_cast<id_t>(child), &facts, WEXITED | WNOWAIT) < 0 &&
         errno == EINTR) {
  }
}

Result<ChildEnd> WaitForChild(pid_t child) {
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return ErrnoError(errno, "waitpid", "wait for a process");
  }
  if (WIFEXITED(state)) return ChildEnd{false, WEXITSTATUS(state)};
  return ChildEnd{true, WTERMSIG(state)};
}

namespace {

// Read by a handler of signals. Never freed, as one may be reading.
struct Groups {
  std::array<std::atomic<pid_t>, 16> numbers{};  // 0: free
  std::atomic<Groups*> more = nullptr;
};
Groups first_groups;
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<Groups*>::is_always_lock_free);

// Only calls that a handler may make.
void OnEnd(int signal) {
  for (const Groups* some = &first_groups; some != nullptr; some = some->more.load()) {
    for (const std::atomic<pid_t>& group : some->numbers) {
      const pid_t number = group.load();
      if (number > 0) ::kill(-number, SIGKILL);
    }
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // pends until this handler returns
}

void HandleEnds() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present {};
    if (::sigaction(signal, nullptr, &present) != 0) continue;
    if ((present.sa_flags & SA_SIGINFO) != 0 || present.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = OnEnd;
    ::sigemptyset(&action.sa_mask);
    (void)::sigaction(signal, &action, nullptr);
  }
}

bool Replace(pid_t from, pid_t to) {
  for (Groups* some = &first_groups; some != nullptr; some = some->more.load()) {
    for (std::atomic<pid_t>& group : some->numbers) {
      pid_t expected = from;
      if (group.compare_exchange_strong(expected, to)) return true;
    }
  }
  return false;
}

// With room for more, and for `group` among them.
void Append(pid_t group) {
  Groups* const made = std::make_unique<Groups>().release();
  made->numbers[0] = group;
  std::atomic<Groups*>* end = &first_groups.more;
  for (Groups* there = nullptr; !end->compare_exchange_strong(there, made); there = nullptr) {
    end = &there->more;
  }
}

}  // namespace

void FollowChildGroup(pid_t group) {
  static std::once_flag once;
  std::call_once(once, HandleEnds);
  if (!Replace(0, group)) Append(group);
}

void ForgetChildGroup(pid_t group) { (void)Replace(group, 0); }

}  // namespace plumbline

extern char** environ;

namespace plumbline {
namespace {

constexpr int kSocket = 3;  // in the child; the memory has the numbers behind it
// How long a program may take to end that was told to.
constexpr std::chrono::seconds kGrace{2};

// An open descriptor. Move-only.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

// All that a child needs between fork() and exec(), where nothing may allocate.
struct Launch {
  std::vector<char*> arguments;       // a null behind them
  std::vector<Descriptor> inherited;  // from descriptor 3 on
  Descriptor empty_input;
  Descriptor failure;                // for the reason why it cannot be run; closed by exec()
  std::array<Descriptor, 2> follow;  // a pipe with a byte once the child's group is followed
  pid_t parent = 0;
  int first_free = kSocket;  // what is handed over is out of the way of the numbers it will have

  Status Add(int descriptor) {
    inherited.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, first_free));
    if (!inherited.back().is_open()) return ErrnoError(errno, arguments[0], "start");
    return {};
  }
};

// In the child.
[[noreturn]] void Exec(const Launch& launch) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(1);  // it ended before it could be followed
  // What the program starts must not outlive a signal that comes here first.
  char followed = 0;
  while (::read(launch.follow[0].number(), &followed, 1) < 0 && errno == EINTR) {
  }
  ::dup2(launch.empty_input.number(), STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  for (size_t i = 0; i < launch.inherited.size(); ++i) {
    ::dup2(launch.inherited[i].number(), kSocket + static_cast<int>(i));
  }
  ::execve(launch.arguments[0], launch.arguments.data(), environ);
  const int reason = errno;
  (void)!::write(launch.failure.number(), &reason, sizeof(reason));
  ::_exit(127);
}

}  // namespace

// A started program and the thread that started it: the kernel ends the program when that thread
// ends, so the thread lasts as long as the program, and waits for it. Programs that this one left
// behind hold copies of its socket; the end of the program, not of those, is the end of the lines.
class ChildProcess::Running {
 public:
  explicit Running(Descriptor socket) : socket_(std::move(socket)) {}
  ~Running() {
    ::shutdown(socket_.number(), SHUT_RDWR);
    (void)End();
  }

  // 0, or why it cannot be started.
  int Start(Launch launch) {
    std::promise<int> started;
    std::future<int> result = started.get_future();
    thread_ = std::jthread(
        [this, started = std::move(started), &launch]() mutable { Follow(launch, started); });
    return result.get();
  }

  // Kills the program if it does not end by itself within the grace; how it ended.
  std::string End() {
    if (!thread_.joinable()) return "";
    bool was_killed = false;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, kGrace, [&] { return has_ended_; })) {
        was_killed = true;
        Kill();
      }
    }
    thread_.join();
    return was_killed ? "a closed channel" : end_;
  }

  [[nodiscard]] int socket() const { return socket_.number(); }
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  // `launch` is there until `started` has its value.
  void Follow(const Launch& launch, std::promise<int>& started) {
    const pid_t process = ::fork();
    if (process == 0) Exec(launch);
    if (process < 0) {
      has_ended_ = true;
      started.set_value(errno);
      return;
    }
    ::setpgid(process, process);  // whoever comes first
    process_ = process;
    FollowChildGroup(process);
    while (::write(launch.follow[1].number(), "f", 1) < 0 && errno == EINTR) {
    }
    started.set_value(0);
    AwaitEnd(process);
    const std::scoped_lock lock(mutex_);
    ForgetChildGroup(process);
    ::kill(-process, SIGKILL);  // what it left behind
    const Result<ChildEnd> end = WaitForChild(process);
    end_ = end ? end->Text() : end.error().message();
    has_ended_ = true;
    ::shutdown(socket_.number(), SHUT_RDWR);
    changed_.notify_all();
  }

  // Requires: the lock, and has_ended_ is false.
  void Kill() {
    ::kill(-process_, SIGKILL);
    ::kill(process_, SIGKILL);
  }

  Descriptor socket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;  // with mutex_, as the following
  std::string end_;
  pid_t process_ = -1;  // before the thread is known to have started, then constant
  std::jthread thread_;
};

std::string FindProgram(std::string_view name) {
  const auto can_run = [](const std::string& path) {
    return KindOf(path) == PathKind::kFile && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string_view::npos) {
    return can_run(std::string(name)) ? std::string(name) : std::string();
  }
  const char* directories = std::getenv("PATH");
  if (name.empty() || directories == nullptr) return {};
  for (const std::string_view directory : SplitAt(directories, ':')) {
    const std::string path = JoinPath(directory.empty() ? "." : directory, name);
    if (can_run(path)) return path;
  }
  return {};
}

ChildProcess::ChildProcess() = default;
ChildProcess::ChildProcess(ChildProcess&& other) noexcept = default;
ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept = default;
ChildProcess::~ChildProcess() = default;

Result<ChildProcess> ChildProcess::Start(const std::vector<std::string>& words,
                                         std::span<const SharedBytes* const> memory) {
  Launch launch;
  for (const std::string& word : words) {
    launch.arguments.push_back(const_cast<char*>(word.c_str()));
  }
  launch.arguments.push_back(nullptr);
  launch.parent = ::getpid();
  launch.first_free = kSocket + 1 + static_cast<int>(memory.size());
  const auto failed = [&](int reason) {
    return Error(ErrorCode::kIo, ErrnoError(reason, words[0], "start").message());
  };
  int ends[2], pipe[2], follow[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed(errno);
  ChildProcess child;
  child.running_ = std::make_unique<Running>(Descriptor(ends[0]));
  const Descriptor theirs(ends[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return failed(errno);
  const Descriptor failure(pipe[0]);
  launch.failure = Descriptor(::fcntl(pipe[1], F_DUPFD_CLOEXEC, launch.first_free));
  ::close(pipe[1]);
  launch.empty_input = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!launch.failure.is_open() || !launch.empty_input.is_open()) return failed(errno);
  if (::pipe2(follow, O_CLOEXEC) != 0) return failed(errno);
  launch.follow = {Descriptor(follow[0]), Descriptor(follow[1])};
  PL_TRY(launch.Add(theirs.number()));
  for (const SharedBytes* bytes : memory) PL_TRY(launch.Add(bytes->descriptor()));
  if (const int reason = child.running_->Start(std::move(launch)); reason != 0) {
    return failed(reason);
  }
  int reason = 0;
  ssize_t got = 0;
  while ((got = ::read(failure.number(), &reason, sizeof(reason))) < 0 && errno == EINTR) {
  }
  if (got > 0) return failed(reason);
  return child;
}

Error ChildProcess::Ended() {
  const std::string end = running_->End();
  running_.reset();
  received_.clear();
  return {ErrorCode::kIo, end};
}

int ChildProcess::socket() const { return running_->socket(); }

pid_t ChildProcess::group() const { return running_->process(); }

Status ChildProcess::Send(std::string_view line, int descriptor) {
  std::string message(line);
  message += '\n';
  // The descriptor goes with the first bytes that are sent.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  for (std::string_view rest = message; !rest.empty();) {
    iovec part{const_cast<char*>(rest.data()), rest.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptor >= 0) {
      header.msg_control = control;
      header.msg_controllen = sizeof(control);
      cmsghdr* const attached = CMSG_FIRSTHDR(&header);
      attached->cmsg_level = SOL_SOCKET;
      attached->cmsg_type = SCM_RIGHTS;
      attached->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(attached), &descriptor, sizeof(int));
    }
    const ssize_t sent = ::sendmsg(running_->socket(), &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Ended();
    descriptor = -1;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

Result<std::string> ChildProcess::Ask(std::string_view line) {
  PL_TRY(Send(line));
  return ReadLine();
}

// Takes a line out of what has arrived, in which there is no line end before `from`.
std::optional<std::string> ChildProcess::ReceivedLine(size_t from) {
  const size_t end = received_.find('\n', from);
  if (end == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

Result<std::string> ChildProcess::ReadLine() {
  size_t searched = 0;
  for (;;) {
    if (std::optional<std::string> line = ReceivedLine(searched)) return *std::move(line);
    searched = received_.size();
    char buffer[4096];
    const ssize_t got = ::recv(running_->socket(), buffer, sizeof(buffer), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ended();
    received_.append(buffer, static_cast<size_t>(got));
  }
}

Result<std::optional<std::string>> ChildProcess::TakeLine() {
  size_t searched = 0;
  for (;;) {
    if (std::optional<std::string> line = ReceivedLine(searched)) return line;
    searched = received_.size();
    char buffer[4096];
    const ssize_t got = ::recv(running_->socket(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<std::string>();
    if (got <= 0) return Ended();
    received_.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace plumbline
