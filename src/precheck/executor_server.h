// The Python interpreter beside this program that makes executors: it loads the framework once and
// forks, so that an executor that crashed is back within milliseconds.

#ifndef PLUMBLINE_PRECHECK_EXECUTOR_SERVER_H_
#define PLUMBLINE_PRECHECK_EXECUTOR_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file_bytes.h"
#include "base/process/child_process.h"
#include "plumbline/result.h"
#include "precheck/executor_wire.h"

namespace plumbline::precheck {

// The interpreter to run: `chosen`, else $PLUMBLINE_PYTHON, else python3 or python beside this
// program, else of PATH. kNotFound: none can be run; the message names what was tried.
Result<std::string> FindPython(const std::string& chosen);

// The words behind an interpreter that run a module of plumbline, as -m does. Where there is no
// such module, descriptor 3 gets a line {"error": text} and nobody prints anything.
std::vector<std::string> ModuleWords(std::string_view module);

struct ServerProgram {
  std::string python;  // empty: FindPython()
  std::vector<std::string> words = ModuleWords("plumbline.precheck_run.server");
  // How long loading a framework may take: minutes on a network file system.
  std::chrono::seconds start_limit{600};
};

// Move-only. Not thread-safe.
class ExecutorServer {
 public:
  // Starts the interpreter; it loads the framework while the caller goes on. `memory` is what its
  // executors will see: of each slot inputs, results of the bench side, results of the device side.
  // kNotFound, kIo.
  static Result<ExecutorServer> Launch(const ServerProgram& program, const ServerStart& start,
                                       std::span<const SharedBytes* const> memory);
  // Waits until the framework is loaded. kUnsupported: the interpreter says that there is no such
  // device or framework. kIo: it ended, or takes too long.
  Result<ServerFacts> AwaitReady();

  // Makes an executor. Returns this side's end of its channel, which the caller closes. kIo: the
  // interpreter has ended.
  Result<int> Fork(const ExecutorStart& start);
  // What has ended since the last call, one at a time; nothing: no more. kIo: the interpreter has
  // ended itself, and all executors with it.
  Result<std::optional<ExecutorEnd>> TakeEnd();

  // Can be read once TakeEnd() has something to say.
  [[nodiscard]] int socket() const { return child_.socket(); }
  // Of the interpreter and all executors.
  [[nodiscard]] pid_t group() const { return child_.group(); }
  [[nodiscard]] bool is_running() const { return child_.is_running(); }

 private:
  std::string python_, framework_;
  std::chrono::seconds start_limit_{};
  ChildProcess child_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_EXECUTOR_SERVER_H_
