#include "base/process/isolated_run.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/file/file_bytes.h"
#include "base/memory/bytes.h"
#include "base/process/child_process.h"

namespace plumbline {
namespace {

[[noreturn]] void RunAndExit(const std::function<int()>& work, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before it could be followed
  const int status = work();
  std::fflush(nullptr);
  ::_exit(status);
}

// Signals by which somebody ends a program on purpose.
bool IsRequest(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

}  // namespace

Result<int> RunIsolated(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return ErrnoError(errno, "fork", "make a process");
  if (child == 0) RunAndExit(work, parent);
  PL_TRY_ASSIGN(const ChildEnd end, WaitForChild(child));
  if (!end.by_signal) return end.number;
  if (IsRequest(end.number)) std::raise(end.number);
  return Error(ErrorCode::kCorrupt, "ended by " + end.Text());
}

Result<Result<std::vector<std::byte>>> RunIsolatedFor(
    const std::function<Result<std::string>()>& work) {
  // The last byte is 0 behind what was made, else 1 + the code of an error behind its message.
  PL_TRY_ASSIGN(SharedBytes memory, SharedBytes::Create());
  PL_TRY_ASSIGN(
      const int status, RunIsolated([&] {
        const Result<std::string> made = work();
        const std::string& text = made ? *made : made.error().message();
        const auto code =
            made ? std::byte{0} : std::byte(1 + static_cast<int>(made.error().code()));
        const auto bytes = std::as_bytes(std::span(text));
        return memory.WriteAt(bytes, 0) && memory.WriteAt({&code, 1}, text.size()) ? 0 : 1;
      }));
  PL_TRY_ASSIGN(std::vector<std::byte> bytes, memory.Read());
  if (status != 0 || bytes.empty()) {
    return Error(ErrorCode::kIo, "a process: cannot hand over what it made. Free memory");
  }
  const auto code = std::to_integer<int>(bytes.back());
  bytes.pop_back();
  if (code == 0) return Result<std::vector<std::byte>>(std::move(bytes));
  return Result<std::vector<std::byte>>(
      Error(static_cast<ErrorCode>(code - 1), std::string(AsText(bytes))));
}

}  // namespace plumbline
