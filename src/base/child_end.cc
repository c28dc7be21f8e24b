#include "base/child_end.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"

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

}  // namespace plumbline
