#include "base/isolated_run.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/child_end.h"
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
  PL_TRY_ASSIGN(const ChildEnd end, WaitForChild(child));
  if (!end.by_signal) return end.number;
  if (IsRequest(end.number)) std::raise(end.number);
  return Error(ErrorCode::kCorrupt, "ended by " + end.Text());
}

}  // namespace plumbline
