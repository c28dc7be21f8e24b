// Child processes: how one ended, groups that end with this process, and programs that run beside
// it and answer requests.

#ifndef PLUMBLINE_BASE_PROCESS_CHILD_PROCESS_H_
#define PLUMBLINE_BASE_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file_bytes.h"
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

// Process groups of programs that were started beside this one: they end when somebody ends this
// one.

// From here to ForgetChildGroup() an interrupt, a hangup or a termination of this process (SIGINT,
// SIGHUP, SIGTERM) kills that group too. Where the process has handlers of its own, or ignores a
// signal, nothing of that signal changes. Thread-safe.
void FollowChildGroup(pid_t group);
void ForgetChildGroup(pid_t group);

// A program that runs beside this one, answers its requests line by line, and shares memory with
// it.

// The path of a program by the rules of a shell: a name with a slash is a path, another one is
// looked up in PATH. Empty: there is none that can be run.
std::string FindProgram(std::string_view name);

// A running program. Its descriptor 3 is a socket for lines, those from 4 on are the memory it was
// given; standard input is empty, standard output goes to standard error. It is a process group:
// programs that it started end with it, and all of them with this process, however that ends (those
// that it started: when it is interrupted or terminated). Move-only; destruction closes the socket,
// upon which the program must end, and kills it where it does not within two seconds.
class ChildProcess {
 public:
  ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  // `words[0]` is the path of the program. kIo: it cannot be started.
  static Result<ChildProcess> Start(const std::vector<std::string>& words,
                                    std::span<const SharedBytes* const> memory);

  [[nodiscard]] bool is_running() const { return running_ != nullptr; }
  // Sends one line and waits for one. kIo: the program has ended; it was waited for, and the
  // message says how it ended ("exit status 3", "signal 11 (Segmentation fault)"). One that closed
  // its socket and goes on is killed ("a closed channel").
  Result<std::string> Ask(std::string_view line);
  // The next line that it sends by itself. As Ask().
  Result<std::string> ReadLine();

  // For one thread that waits for several programs (poll): what Ask() does in one.
  // Sends a line, and with it a descriptor, of which the program gets a copy; -1: none.
  Status Send(std::string_view line, int descriptor = -1);
  // The next line if it is there already.
  Result<std::optional<std::string>> TakeLine();
  // Can be read once there is something to take or the program has ended. Requires: is_running().
  [[nodiscard]] int socket() const;
  // Of the program and what it started. Requires: is_running().
  [[nodiscard]] pid_t group() const;

 private:
  class Running;
  Error Ended();
  std::optional<std::string> ReceivedLine(size_t from);

  std::unique_ptr<Running> running_;
  std::string received_;  // behind the last line
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_CHILD_PROCESS_H_
