// For tests only: a directory of their own, failing system calls, and dying processes.

#ifndef PLUMBLINE_BASE_FILE_TEST_DIRECTORY_H_
#define PLUMBLINE_BASE_FILE_TEST_DIRECTORY_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file/file.h"

namespace plumbline::testing {

// A fresh directory in `parent`, removed with its contents on destruction.
class TestDirectory {
 public:
  explicit TestDirectory(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "plumbline-XXXXXX").string();
    path_ = ::mkdtemp(name.data()) != nullptr ? name : std::string();
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct FailingCallsState {
  int fail_at = 0;
  int error = EIO;
  bool sticky = false;
  const SyscallTable* real = nullptr;
  int calls = 0;
};

// While it lives, counts the calls made through Syscalls() and makes call number `fail_at` (from 0)
// fail with `error`; with `sticky`, all calls of that kind of damage from there on. close, unlink
// and read always work: a failing unlink would leave what the test looks for. Not thread-safe.
class FailingCalls {
 public:
  explicit FailingCalls(int fail_at, int error = EIO, bool sticky = false) : real_(Syscalls()) {
    state_ = {.fail_at = fail_at, .error = error, .sticky = sticky, .real = &real_};
    SyscallTable& table = Syscalls();
    table.openat = [](int d, const char* p, int f, mode_t m) {
      return Fails() ? -1 : Real().openat(d, p, f, m);
    };
    table.write = [](int fd, const void* b, size_t n) {
      return Fails() ? ssize_t{-1} : Real().write(fd, b, n);
    };
    table.fsync = [](int fd) { return Fails() ? -1 : Real().fsync(fd); };
    table.syncfs = [](int fd) { return Fails() ? -1 : Real().syncfs(fd); };
    table.renameat = [](int d, const char* a, int e, const char* b) {
      return Fails() ? -1 : Real().renameat(d, a, e, b);
    };
    table.linkat = [](int d, const char* a, int e, const char* b, int f) {
      return Fails() ? -1 : Real().linkat(d, a, e, b, f);
    };
    table.mkdirat = [](int d, const char* p, mode_t m) {
      return Fails() ? -1 : Real().mkdirat(d, p, m);
    };
  }
  ~FailingCalls() { Syscalls() = real_; }
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  [[nodiscard]] static bool fired() { return state_.calls > state_.fail_at; }

 private:
  static const SyscallTable& Real() { return *state_.real; }
  static bool Fails() {
    const int call = state_.calls++;
    if (call != state_.fail_at && !(state_.sticky && call > state_.fail_at)) return false;
    errno = state_.error;
    return true;
  }

  static inline FailingCallsState state_;
  SyscallTable real_;
};

// Runs `work` in a process of its own that dies in its write number `last_write` (from 0; those at
// places alone count), half of it done. False where it came to its end before.
template <class Work>
bool DiesInWrite(int last_write, const Work& work) {
  static int writes_left;
  const pid_t child = ::fork();
  if (child == 0) {
    writes_left = last_write;
    Syscalls().pwrite = [](int fd, const void* bytes, size_t size, off_t offset) {
      if (writes_left-- > 0) return ::pwrite(fd, bytes, size, offset);
      ::_exit(::pwrite(fd, bytes, size / 2, offset) >= 0 ? 1 : 2);
    };
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

// Descriptors open in this process.
inline size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

}  // namespace plumbline::testing

#endif  // PLUMBLINE_BASE_FILE_TEST_DIRECTORY_H_
