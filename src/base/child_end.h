// Waiting for child processes.

#ifndef PLUMBLINE_BASE_CHILD_END_H_
#define PLUMBLINE_BASE_CHILD_END_H_

#include <sys/types.h>

#include <string>

#include "plumbline/result.h"

namespace plumbline {

// How a child process ended.
struct ChildEnd {
  bool by_signal = false;
  int number = 0;  // of the signal, else the exit status

  // "exit status 3", "signal 11 (Segmentation fault)".
  [[nodiscard]] std::string Text() const;
};

// Waits until a child of this process has ended, and leaves it: its number is nobody else's yet.
void AwaitEnd(pid_t child);
// The same, and releases it. kIo: it is no child of this process, or was released already.
Result<ChildEnd> WaitForChild(pid_t child);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_CHILD_END_H_
