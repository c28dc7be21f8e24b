#include "base/file/lost_mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

namespace plumbline {

namespace {

struct Mapping {
  size_t size;
  std::string path;
};

// Every mapped file, and what was lost of them. Locked by threads that touch no mapped file
// meanwhile, so that a handler may wait for them.
class Mappings {
 public:
  void Add(std::span<const std::byte> bytes, const std::string& path) {
    const Lock lock(is_locked_);
    by_address_[bytes.data()] = {bytes.size(), path};
  }

  void Remove(std::span<const std::byte> bytes) {
    const Lock lock(is_locked_);
    by_address_.erase(bytes.data());
  }

  // Puts zeros in the place of what is gone from `address` on; false if it is in no mapped file.
  // For handlers: makes system calls only.
  bool Replace(const std::byte* address) {
    const Lock lock(is_locked_);
    auto found = by_address_.upper_bound(address);
    if (found == by_address_.begin()) return false;
    --found;
    const std::byte* const end = found->first + found->second.size;
    if (address >= end) return false;
    const auto page_size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const uintptr_t page = reinterpret_cast<uintptr_t>(address) / page_size * page_size;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (::mmap(reinterpret_cast<void*>(page), reinterpret_cast<uintptr_t>(end) - page, PROT_READ,
               flags, -1, 0) == MAP_FAILED) {
      return false;
    }
    const std::string& path = found->second.path;
    last_length_ = std::min(path.size(), last_path_.size());
    std::copy_n(path.data(), last_length_, last_path_.data());
    ++losses_;
    return true;
  }

  uint64_t losses() {
    const Lock lock(is_locked_);
    return losses_;
  }

  std::string LastPath() {
    const Lock lock(is_locked_);
    return {last_path_.data(), last_length_};
  }

 private:
  // A mutex would not do in a handler.
  class Lock {
   public:
    explicit Lock(std::atomic_flag& flag) : flag_(flag) {
      while (flag_.test_and_set(std::memory_order_acquire)) {
      }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { flag_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& flag_;
  };

  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT;
  std::map<const std::byte*, Mapping> by_address_;
  uint64_t losses_ = 0;
  std::array<char, PATH_MAX> last_path_{};
  size_t last_length_ = 0;
};

// Never destroyed: files may be unmapped while the process ends.
Mappings& AllMappings() {
  static Mappings& all = *new Mappings;
  return all;
}

constexpr std::string_view kWhatHappened =
    "became shorter, or its disk failed, while it was read. Run again when no other program writes "
    "to it";

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
  Say(": ");
  Say(kWhatHappened);
  Say("\n");
  ::_exit(status_of_process);
}

// What the process does about SIGBUS beside this; set while a LossWatch lives.
struct sigaction other_action {};

void PassOn(int signal, siginfo_t* info, void* context) {
  if ((other_action.sa_flags & SA_SIGINFO) != 0) {
    return other_action.sa_sigaction(signal, info, context);
  }
  if (other_action.sa_handler != SIG_DFL && other_action.sa_handler != SIG_IGN) {
    return other_action.sa_handler(signal);
  }
  if (info->si_code <= 0 && other_action.sa_handler == SIG_IGN) return;
  // Where the signal was raised it comes again, and ends the process as it would have.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigemptyset(&action.sa_mask);
  (void)::sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) (void)::raise(signal);
}

void OnWatchedBusError(int signal, siginfo_t* info, void* context) {
  // One that another process sent may have stopped a thread that holds the list.
  const bool is_sent = info->si_code <= 0;
  if (is_sent || !AllMappings().Replace(static_cast<const std::byte*>(info->si_addr))) {
    PassOn(signal, info, context);
  }
}

std::mutex watches_mutex;
size_t watches = 0;  // guarded by watches_mutex

}  // namespace

void EndWithLineOnLostMapping(int exit_status) {
  status_of_process = exit_status;
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  (void)::sigaction(SIGBUS, &action, nullptr);
}

void LiveOnWithLostMapping() {
  if (status_of_process.exchange(0) == 0) return;
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigemptyset(&action.sa_mask);
  (void)::sigaction(SIGBUS, &action, nullptr);
}

void RememberMapping(std::span<const std::byte> bytes, const std::string& path) {
  AllMappings().Add(bytes, path);
}

void ForgetMapping(std::span<const std::byte> bytes) { AllMappings().Remove(bytes); }

LossWatch::LossWatch() {
  const std::lock_guard lock(watches_mutex);
  losses_before_ = AllMappings().losses();
  if (watches++ > 0 || status_of_process != 0) return;
  struct sigaction action {};
  action.sa_sigaction = OnWatchedBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  (void)::sigaction(SIGBUS, &action, &other_action);
}

LossWatch::~LossWatch() {
  const std::lock_guard lock(watches_mutex);
  if (--watches > 0 || status_of_process != 0) return;
  struct sigaction now {};
  (void)::sigaction(SIGBUS, nullptr, &now);
  // A handler that came later stays; it may call this one, which passes everything on.
  const bool is_own = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == OnWatchedBusError;
  if (is_own) (void)::sigaction(SIGBUS, &other_action, nullptr);
}

Status LossWatch::Check() const {
  Mappings& all = AllMappings();
  if (all.losses() == losses_before_) return {};
  return Error(ErrorCode::kIo, fmt::format("{}: {}", all.LastPath(), kWhatHappened));
}

}  // namespace plumbline
