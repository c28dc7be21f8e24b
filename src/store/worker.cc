#include "store/worker.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

namespace plumbline {

Worker::Worker(std::string name) : name_(std::move(name)), pid_(::getpid()) {}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  if (::getpid() != pid_) {
    // Forked child: the thread exists in the parent only, and the mutex may be locked for ever.
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::Submit(std::string key, std::function<void()> job) {
  if (::getpid() != pid_) return;
  {
    const std::lock_guard lock(mutex_);
    if (!key.empty()) std::erase_if(jobs_, [&](const Job& j) { return j.key == key; });
    jobs_.push_back({std::move(key), std::move(job)});
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Run(); });
      ::pthread_setname_np(thread_.native_handle(), name_.c_str());
    }
  }
  changed_.notify_all();
}

void Worker::WaitForAtMost(size_t jobs) {
  if (::getpid() != pid_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.size() + (busy_ ? 1 : 0) <= jobs; });
}

void Worker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job.run();
    job.run = nullptr;  // what it holds goes before Drain() returns
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace plumbline
