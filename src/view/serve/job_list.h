// Work that goes on beside the answers: with its progress, and an end on demand.

#ifndef PLUMBLINE_VIEW_SERVE_JOB_LIST_H_
#define PLUMBLINE_VIEW_SERVE_JOB_LIST_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plumbline/result.h"
#include "view/serve/change_signal.h"

namespace plumbline::view {

// What the work of a job sees of it. Thread-safe.
class JobControl {
 public:
  explicit JobControl(ChangeSignal& signal) : signal_(signal) {}
  // 0 to 1. Listeners are told of whole percents.
  void SetProgress(double share);
  [[nodiscard]] double progress() const { return progress_; }
  // Set when the work is to end as soon as it can.
  [[nodiscard]] const std::atomic<bool>& cancelled() const { return cancelled_; }
  void Cancel() { cancelled_ = true; }

 private:
  ChangeSignal& signal_;
  std::atomic<double> progress_ = 0;
  std::atomic<bool> cancelled_ = false;
};

enum class JobState : uint8_t { kRunning, kDone, kFailed, kCancelled };

// A file that a job made, to be fetched once or more.
struct JobFile {
  std::string path;  // temporary; removed with the job
  std::string name;  // as it is to be called
  std::string type;  // of media
};

struct JobFacts {
  std::string id, what;
  JobState state = JobState::kRunning;
  double progress = 0;
  std::string error;
  std::optional<JobFile> file;
};

// Jobs one after the other on a few threads; those that wait count as running. What ended stays in
// the list until kMostEnded came later. Thread-safe.
class JobList {
 public:
  static constexpr size_t kMostEnded = 50;
  static constexpr size_t kMostWaiting = 100;

  using Work = std::function<Result<std::optional<JobFile>>(JobControl&)>;

  JobList(size_t threads, ChangeSignal& signal);
  // Cancels what runs and waits for its end; files of jobs are removed.
  ~JobList();
  JobList(const JobList&) = delete;
  JobList& operator=(const JobList&) = delete;

  // Its id. kUnsupported: too many wait already.
  Result<std::string> Start(std::string what, Work work);
  // kNotFound.
  Status Cancel(const std::string& id);
  void CancelAll();
  [[nodiscard]] std::vector<JobFacts> Facts() const;
  // kNotFound: no such job, or it made none.
  [[nodiscard]] Result<JobFile> FileOf(const std::string& id) const;

 private:
  struct Job {
    explicit Job(ChangeSignal& signal) : control(signal) {}
    JobControl control;
    JobFacts facts;
    Work work;
    bool is_taken = false;  // by a thread
  };

  void RunJobs();
  std::shared_ptr<Job> Take();
  void End(Job& job, Result<std::optional<JobFile>> result);
  void ForgetOld();

  ChangeSignal& signal_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Job>> jobs_;
  uint64_t last_id_ = 0;
  bool is_ending_ = false;
  std::vector<std::jthread> threads_;  // the last member: joined before the others end
};

// The answer {"jobs": [...]}.
std::string JobsText(const std::vector<JobFacts>& jobs);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_JOB_LIST_H_
