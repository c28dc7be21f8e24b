#include "base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"

extern char** environ;

namespace plumbline {
namespace {

constexpr int kSocket = 3;       // in the child
constexpr int kFirstMemory = 4;  // in the child
// Descriptors that are handed over are moved out of the way of those numbers.
constexpr int kFirstFree = 64;

Error MemoryError(std::string_view action) { return ErrnoError(errno, "shared memory", action); }

void CloseIfOpen(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// The descriptors of a child that is being started.
class HandedOver {
 public:
  HandedOver() { ::posix_spawn_file_actions_init(&actions_); }
  ~HandedOver() {
    ::posix_spawn_file_actions_destroy(&actions_);
    for (int& copy : copies_) CloseIfOpen(copy);
  }
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;

  Status Add(int descriptor, int as) {
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFree);
    if (copy < 0) return MemoryError("hand a descriptor over");
    copies_.push_back(copy);
    ::posix_spawn_file_actions_adddup2(&actions_, copy, as);
    return {};
  }
  posix_spawn_file_actions_t& actions() { return actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
  std::vector<int> copies_;
};

}  // namespace

SharedBytes::SharedBytes(SharedBytes&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedBytes& SharedBytes::operator=(SharedBytes&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedBytes::~SharedBytes() { CloseIfOpen(descriptor_); }

Result<SharedBytes> SharedBytes::Create() {
  SharedBytes memory;
  memory.descriptor_ = ::memfd_create("plumbline", MFD_CLOEXEC);
  if (memory.descriptor_ < 0) return MemoryError("create");
  return memory;
}

Status SharedBytes::Reset(size_t size) {
  const bool done =
      ::ftruncate(descriptor_, 0) == 0 && ::ftruncate(descriptor_, static_cast<off_t>(size)) == 0;
  if (!done) return MemoryError(fmt::format("set to {} bytes", size));
  return {};
}

Status SharedBytes::WriteAt(std::span<const std::byte> bytes, size_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return MemoryError(fmt::format("write {} bytes", bytes.size()));
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<size_t>(written);
  }
  return {};
}

Result<std::vector<std::byte>> SharedBytes::Read() const {
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) return MemoryError("read");
  std::vector<std::byte> bytes(static_cast<size_t>(facts.st_size));
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return MemoryError("read");
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

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

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      process_(std::exchange(other.process_, -1)),
      received_(std::move(other.received_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(process_, other.process_);
  std::swap(received_, other.received_);
  return *this;
}

ChildProcess::~ChildProcess() { Close(); }

void ChildProcess::Close() {
  CloseIfOpen(socket_);
  if (process_ > 0) {
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = -1;
}

Result<ChildProcess> ChildProcess::Start(const std::vector<std::string>& words,
                                         std::span<const SharedBytes* const> memory) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoError(errno, words[0], "start");
  }
  ChildProcess child;
  child.socket_ = ends[0];
  HandedOver handed;
  Status added = handed.Add(ends[1], kSocket);
  ::close(ends[1]);
  for (size_t i = 0; i < memory.size() && added; ++i) {
    added = handed.Add(memory[i]->descriptor(), kFirstMemory + static_cast<int>(i));
  }
  PL_TRY(std::move(added));
  ::posix_spawn_file_actions_addopen(&handed.actions(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&handed.actions(), STDERR_FILENO, STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int failed = ::posix_spawn(&child.process_, words[0].c_str(), &handed.actions(), nullptr,
                                   arguments.data(), environ);
  if (failed != 0) {
    child.process_ = -1;
    return Error(ErrorCode::kIo, ErrnoError(failed, words[0], "start").message());
  }
  return child;
}

Error ChildProcess::Ended() {
  CloseIfOpen(socket_);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return {ErrorCode::kIo, WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                              : fmt::format("exit status {}", WEXITSTATUS(status))};
}

Result<std::string> ChildProcess::Ask(std::string_view line) {
  std::string message(line);
  message += '\n';
  for (std::string_view rest = message; !rest.empty();) {
    const ssize_t sent = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Ended();
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  return ReadLine();
}

Result<std::string> ChildProcess::ReadLine() {
  size_t searched = 0;
  for (;;) {
    const size_t end = received_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    searched = received_.size();
    char buffer[4096];
    const ssize_t got = ::recv(socket_, buffer, sizeof(buffer), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ended();
    received_.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace plumbline
