// A program that runs beside this one, answers its requests line by line, and shares memory with
// it.

#ifndef PLUMBLINE_BASE_CHILD_PROCESS_H_
#define PLUMBLINE_BASE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// Bytes that two processes see; nothing of it is left when both have ended. Move-only.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(SharedBytes&& other) noexcept;
  SharedBytes& operator=(SharedBytes&& other) noexcept;
  ~SharedBytes();

  static Result<SharedBytes> Create();
  // Makes it `size` bytes of zeros.
  Status Reset(size_t size);
  Status WriteAt(std::span<const std::byte> bytes, size_t offset);
  // All of it, as the other process left it.
  [[nodiscard]] Result<std::vector<std::byte>> Read() const;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// The path of a program by the rules of a shell: a name with a slash is a path, another one is
// looked up in PATH. Empty: there is none that can be run.
std::string FindProgram(std::string_view name);

// A running program. Its descriptor 3 is a socket for lines, those from 4 on are the memory it was
// given; standard input is empty, standard output goes to standard error. Move-only; destruction
// closes the socket, upon which the program must end, and waits for it.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  // `words[0]` is the path of the program. kIo: it cannot be started.
  static Result<ChildProcess> Start(const std::vector<std::string>& words,
                                    std::span<const SharedBytes* const> memory);

  [[nodiscard]] bool is_running() const { return socket_ >= 0; }
  // Sends one line and waits for one. kIo: the program has ended; it was waited for, and the
  // message says how it ended ("exit status 3", "signal 11").
  Result<std::string> Ask(std::string_view line);
  // The next line that it sends by itself. As Ask().
  Result<std::string> ReadLine();

 private:
  Error Ended();
  void Close();

  int socket_ = -1;
  pid_t process_ = -1;
  std::string received_;  // behind the last line
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_CHILD_PROCESS_H_
