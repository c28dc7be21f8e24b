// A program that runs beside this one, answers its requests line by line, and shares memory with
// it.

#ifndef PLUMBLINE_BASE_CHILD_PROCESS_H_
#define PLUMBLINE_BASE_CHILD_PROCESS_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_bytes.h"
#include "plumbline/result.h"

namespace plumbline {

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

 private:
  class Running;
  Error Ended();

  std::unique_ptr<Running> running_;
  std::string received_;  // behind the last line
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_CHILD_PROCESS_H_
