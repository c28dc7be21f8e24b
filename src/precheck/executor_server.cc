#include "precheck/executor_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file/file.h"

namespace plumbline::precheck {
namespace {

constexpr const char* kChosen = "PLUMBLINE_PYTHON";
constexpr std::array<const char*, 2> kNames = {"python3", "python"};

// Whether the descriptor can be read within the limit; true also where the other end is closed.
bool CanReadWithin(int descriptor, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waited{descriptor, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready > 0) return true;
    // A signal ends the wait only where its handler says so, by what it sets; that is looked at by
    // the caller afterwards.
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Result<std::string> FindPython(const std::string& chosen) {
  const char* const environment = std::getenv(kChosen);
  const bool has_environment = environment != nullptr && *environment != '\0';
  const std::string named = !chosen.empty() ? chosen : has_environment ? environment : "";
  if (!named.empty()) {
    std::string path = FindProgram(named);
    if (!path.empty()) return path;
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: cannot be run (expected a Python interpreter with plumbline and "
                             "the framework of the recording{})",
                             named, chosen.empty() ? fmt::format("; {} names it", kChosen) : ""));
  }
  std::vector<std::string> tried;
  // The interpreter of the environment that plumb was installed into has the same plumbline.
  if (const Result<std::string> self = RealPath("/proc/self/exe"); self) {
    for (const char* name : kNames) tried.push_back(JoinPath(DirectoryOf(*self), name));
  }
  tried.insert(tried.end(), kNames.begin(), kNames.end());
  for (const std::string& one : tried) {
    std::string path = FindProgram(one);
    if (!path.empty()) return path;
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("no Python interpreter (tried {} of PATH). Name the one that has the "
                           "framework of the recording with {}",
                           fmt::join(tried, ", "), kChosen));
}

std::vector<std::string> ModuleWords(std::string_view module) {
  constexpr std::string_view kProgram =
      "import importlib.util, json, os, runpy, sys\n"
      "try:\n"
      "    if importlib.util.find_spec('{0}') is None:\n"
      "        raise ImportError('there is no {0}')\n"
      "except Exception as error:\n"
      "    text = '%s: %s (expected an interpreter that has plumbline and the framework of the '\n"
      "    text += 'recording). Name that one with {1} or, where the command has it, --python'\n"
      "    line = json.dumps({{'error': text % (type(error).__name__, error)}}) + '\\n'\n"
      "    os.write(3, line.encode())\n"
      "    sys.exit(1)\n"
      "runpy.run_module('{0}', run_name='__main__', alter_sys=True)\n";
  return {"-c", fmt::format(kProgram, module, kChosen)};
}

Result<ExecutorServer> ExecutorServer::Launch(const ServerProgram& program,
                                              const ServerStart& start,
                                              std::span<const SharedBytes* const> memory) {
  ExecutorServer server;
  PL_TRY_ASSIGN(server.python_, FindPython(program.python));
  server.framework_ = start.framework;
  server.start_limit_ = program.start_limit;
  std::vector<std::string> words = {server.python_};
  words.insert(words.end(), program.words.begin(), program.words.end());
  PL_TRY_ASSIGN(server.child_, ChildProcess::Start(words, memory));
  const plumbline::Status sent = server.child_.Send(StartLine(start));
  // One that ended at once is found out by AwaitReady(), which says how.
  (void)sent;
  return server;
}

Result<ServerFacts> ExecutorServer::AwaitReady() {
  const auto failed = [&](std::string_view how) {
    return Error(
        ErrorCode::kIo,
        fmt::format("{}: {} while it loaded plumbline and {} (expected an interpreter that "
                    "has both). Name another one with {}",
                    python_, how, framework_, kChosen));
  };
  if (!child_.is_running()) return failed("ended");
  if (!CanReadWithin(child_.socket(), start_limit_)) {
    return failed(fmt::format("gave no answer within {} s", start_limit_.count()));
  }
  const Result<std::string> line = child_.ReadLine();
  if (!line) return failed(fmt::format("ended with {}", line.error().message()));
  Result<ServerFacts> facts = ParseServerFacts(*line);
  if (!facts) return facts.error().In(python_);
  return facts;
}

Result<int> ExecutorServer::Fork(const ExecutorStart& start) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoError(errno, "socketpair", "make a channel");
  }
  const plumbline::Status sent = child_.Send(ForkLine(start), ends[1]);
  ::close(ends[1]);
  if (sent) return ends[0];
  ::close(ends[0]);
  return Error(ErrorCode::kIo, fmt::format("{}: ended with {}", python_, sent.error().message()));
}

Result<std::optional<ExecutorEnd>> ExecutorServer::TakeEnd() {
  if (!child_.is_running()) return Error(ErrorCode::kIo, python_ + ": has ended");
  const Result<std::optional<std::string>> line = child_.TakeLine();
  if (!line) {
    return Error(ErrorCode::kIo, fmt::format("{}: ended with {}", python_, line.error().message()));
  }
  if (!line->has_value()) return std::optional<ExecutorEnd>();
  PL_TRY_ASSIGN(ExecutorEnd end, ParseExecutorEnd(**line));
  return std::optional(std::move(end));
}

}  // namespace plumbline::precheck
