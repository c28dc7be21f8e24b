// One background thread that runs jobs in order: syncing and cleaning up after the recorder.

#ifndef PLUMBLINE_STORE_WORKER_H_
#define PLUMBLINE_STORE_WORKER_H_

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace plumbline {

// Thread-safe. The thread starts with the first job. Destruction waits for all jobs. In a forked
// child, which has no such thread, nothing here does anything.
class Worker {
 public:
  // `name` shows in thread lists; at most 15 bytes.
  explicit Worker(std::string name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues `job`. A job of the same non-empty key that has not started yet is dropped: the new one
  // does its work too.
  void Submit(std::string key, std::function<void()> job);
  // Waits until no job is queued or running.
  void Drain() { WaitForAtMost(0); }
  // Waits until at most that many jobs are queued or running.
  void WaitForAtMost(size_t jobs);

 private:
  struct Job {
    std::string key;
    std::function<void()> run;
  };
  void Run();

  const std::string name_;
  const pid_t pid_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_WORKER_H_
