#include "base/isolated_run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/file.h"

namespace plumbline {
namespace {

[[noreturn]] void RunAndExit(const std::function<int()>& work, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before it could be followed
  const int status = work();
  std::fflush(nullptr);
  ::_exit(status);
}

// Signals by which somebody ends a program on purpose.
bool IsRequest(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

}  // namespace

Result<int> RunIsolated(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return ErrnoError(errno, "fork", "make a process");
  if (child == 0) RunAndExit(work, parent);
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return ErrnoError(errno, "waitpid", "wait for a process");
  }
  if (WIFEXITED(state)) return WEXITSTATUS(state);
  const int signal = WTERMSIG(state);
  if (IsRequest(signal)) std::raise(signal);
  return Error(ErrorCode::kCorrupt,
               fmt::format("ended by signal {} ({})", signal, ::strsignal(signal)));
}

}  // namespace plumbline
