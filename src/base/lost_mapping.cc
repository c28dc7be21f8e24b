#include "base/lost_mapping.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace plumbline {
namespace {

// A handler has no arguments of its own.
std::atomic<int> status_of_process{0};
std::atomic_flag is_ending = ATOMIC_FLAG_INIT;

// Everything below runs in a signal handler: no memory, no locks, no library beyond system calls.

void Say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

// Cuts hexadecimal digits and the character behind them off `line`.
uintptr_t TakeAddress(std::string_view& line) {
  uintptr_t address = 0;
  while (!line.empty()) {
    const char c = line.front();
    line.remove_prefix(1);
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) break;
    address = address * 16 + static_cast<uintptr_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return address;
}

// The path in a line of /proc/self/maps if it maps `address`; else nothing.
std::string_view PathAt(std::string_view line, uintptr_t address) {
  const uintptr_t begin = TakeAddress(line), end = TakeAddress(line);
  if (address < begin || address >= end) return {};
  const size_t path = line.find('/');
  return path == std::string_view::npos ? std::string_view() : line.substr(path);
}

void SayWhichFile(uintptr_t address) {
  static std::array<char, PATH_MAX + 256> buffer;
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t filled = 0;
  while (maps >= 0) {
    const ssize_t count = ::read(maps, buffer.data() + filled, buffer.size() - filled);
    if (count <= 0) break;
    filled += static_cast<size_t>(count);
    std::string_view text(buffer.data(), filled);
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      const std::string_view path = PathAt(text.substr(0, end), address);
      text.remove_prefix(end + 1);
      if (path.empty()) continue;
      Say("plumb: ");
      Say(path);
      return;
    }
    if (text.size() == buffer.size()) break;  // no line is that long
    std::memmove(buffer.data(), text.data(), text.size());
    filled = text.size();
  }
  Say("plumb: an input file");
}

void OnBusError(int, siginfo_t* info, void*) {
  // The first thread speaks; others that read the same file wait for the end.
  while (is_ending.test_and_set()) ::pause();
  SayWhichFile(reinterpret_cast<uintptr_t>(info->si_addr));
  Say(": became shorter, or its disk failed, while it was read. Run again when no other program "
      "writes to it\n");
  ::_exit(status_of_process);
}

}  // namespace

void EndWithLineOnLostMapping(int exit_status) {
  status_of_process = exit_status;
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  (void)::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace plumbline
