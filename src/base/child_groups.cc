#include "base/child_groups.h"

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>

namespace plumbline {
namespace {

// Read by a handler of signals; 0: free.
std::array<std::atomic<pid_t>, 16> groups{};
static_assert(std::atomic<pid_t>::is_always_lock_free);

// Only calls that a handler may make.
void OnEnd(int signal) {
  for (const std::atomic<pid_t>& group : groups) {
    const pid_t number = group.load();
    if (number > 0) ::kill(-number, SIGKILL);
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

void Replace(pid_t from, pid_t to) {
  for (std::atomic<pid_t>& group : groups) {
    pid_t expected = from;
    if (group.compare_exchange_strong(expected, to)) return;
  }
}

}  // namespace

void FollowChildGroup(pid_t group) {
  static std::once_flag once;
  std::call_once(once, HandleEnds);
  Replace(0, group);
}

void ForgetChildGroup(pid_t group) { Replace(group, 0); }

}  // namespace plumbline
