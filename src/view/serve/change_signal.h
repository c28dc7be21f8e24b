// Tells those who wait that something changed.

#ifndef PLUMBLINE_VIEW_SERVE_CHANGE_SIGNAL_H_
#define PLUMBLINE_VIEW_SERVE_CHANGE_SIGNAL_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace plumbline::view {

// A number that grows with every change. Thread-safe.
class ChangeSignal {
 public:
  void Raise() {
    {
      const std::lock_guard lock(mutex_);
      ++changes_;
    }
    changed_.notify_all();
  }

  // The number once it is another than `seen`, or when the time is over.
  uint64_t Await(uint64_t seen, std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [&] { return changes_ != seen; });
    return changes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t changes_ = 1;  // 0: nobody has seen any
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_CHANGE_SIGNAL_H_
