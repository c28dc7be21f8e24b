// Process groups of programs that were started beside this one: they end when somebody ends this
// one.

#ifndef PLUMBLINE_BASE_CHILD_GROUPS_H_
#define PLUMBLINE_BASE_CHILD_GROUPS_H_

#include <sys/types.h>

namespace plumbline {

// From here to ForgetChildGroup() an interrupt, a hangup or a termination of this process (SIGINT,
// SIGHUP, SIGTERM) kills that group too. Where the process has handlers of its own, or ignores a
// signal, nothing of that signal changes. Thread-safe.
void FollowChildGroup(pid_t group);
void ForgetChildGroup(pid_t group);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_CHILD_GROUPS_H_
