#include "base/child_groups.h"

#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>

namespace plumbline {
namespace {

// Read by a handler of signals. Never freed, as one may be reading.
struct Groups {
  std::array<std::atomic<pid_t>, 16> numbers{};  // 0: free
  std::atomic<Groups*> more = nullptr;
};
Groups first;
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<Groups*>::is_always_lock_free);

// Only calls that a handler may make.
void OnEnd(int signal) {
  for (const Groups* some = &first; some != nullptr; some = some->more.load()) {
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
  for (Groups* some = &first; some != nullptr; some = some->more.load()) {
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
  std::atomic<Groups*>* end = &first.more;
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
