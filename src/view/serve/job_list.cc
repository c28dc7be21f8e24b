#include "view/serve/job_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file/file.h"
#include "base/text/json.h"

namespace plumbline::view {
namespace {

std::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kRunning:
      return "running";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
  }
  return "failed";
}

}  // namespace

void JobControl::SetProgress(double share) {
  const double before = progress_.exchange(share);
  if (std::floor(before * 100) != std::floor(share * 100)) signal_.Raise();
}

JobList::JobList(size_t threads, ChangeSignal& signal) : signal_(signal) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { RunJobs(); });
}

JobList::~JobList() {
  CancelAll();
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_all();
  threads_.clear();
  for (const auto& job : jobs_) {
    if (job->facts.file) (void)RemoveFile(job->facts.file->path);
  }
}

Result<std::string> JobList::Start(std::string what, Work work) {
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting =
        std::ranges::count_if(jobs_, [](const auto& job) { return job->work != nullptr; });
    if (static_cast<size_t>(waiting) >= kMostWaiting) {
      return Error(
          ErrorCode::kUnsupported,
          fmt::format("{}: {} jobs wait already. Wait for one, or cancel one", what, kMostWaiting));
    }
    auto job = std::make_shared<Job>(signal_);
    id = std::to_string(++last_id_);
    job->facts.id = id;
    job->facts.what = std::move(what);
    job->work = std::move(work);
    jobs_.push_back(std::move(job));
    ForgetOld();
  }
  wake_.notify_one();
  signal_.Raise();
  return id;
}

void JobList::ForgetOld() {
  const auto has_ended = [](const auto& job) { return job->facts.state != JobState::kRunning; };
  auto ended = static_cast<size_t>(std::ranges::count_if(jobs_, has_ended));
  for (auto at = jobs_.begin(); at != jobs_.end() && ended > kMostEnded;) {
    if (!has_ended(*at)) {
      ++at;
      continue;
    }
    if ((*at)->facts.file) (void)RemoveFile((*at)->facts.file->path);
    at = jobs_.erase(at);
    --ended;
  }
}

std::shared_ptr<JobList::Job> JobList::Take() {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Job> taken;
  wake_.wait(lock, [&] {
    const auto next = std::ranges::find_if(
        jobs_, [](const auto& job) { return job->work != nullptr && !job->is_taken; });
    if (next != jobs_.end()) taken = *next;
    return taken != nullptr || is_ending_;
  });
  if (taken != nullptr) taken->is_taken = true;
  return taken;
}

void JobList::RunJobs() {
  while (const std::shared_ptr<Job> job = Take()) {
    if (job->control.cancelled()) {
      End(*job, Error(ErrorCode::kInvalidArgument, "cancelled"));
    } else {
      End(*job, job->work(job->control));
    }
  }
}

void JobList::End(Job& job, Result<std::optional<JobFile>> result) {
  Work done;  // what it holds goes outside of the lock
  {
    const std::lock_guard lock(mutex_);
    std::swap(done, job.work);
    if (result) {
      job.facts.state = JobState::kDone;
      job.facts.file = *std::move(result);
    } else {
      job.facts.state = job.control.cancelled() ? JobState::kCancelled : JobState::kFailed;
      job.facts.error = result.error().message();
    }
  }
  signal_.Raise();
}

Status JobList::Cancel(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(jobs_, [&](const auto& job) { return job->facts.id == id; });
    if (found == jobs_.end()) {
      return Error(ErrorCode::kNotFound, fmt::format("job {}: there is none", id));
    }
    (*found)->control.Cancel();
  }
  signal_.Raise();
  return {};
}

void JobList::CancelAll() {
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_) job->control.Cancel();
}

std::vector<JobFacts> JobList::Facts() const {
  const std::lock_guard lock(mutex_);
  std::vector<JobFacts> all;
  for (const auto& job : jobs_) {
    JobFacts facts = job->facts;
    facts.progress = facts.state == JobState::kDone ? 1 : job->control.progress();
    all.push_back(std::move(facts));
  }
  return all;
}

Result<JobFile> JobList::FileOf(const std::string& id) const {
  for (const JobFacts& facts : Facts()) {
    if (facts.id == id && facts.file) return *facts.file;
  }
  return Error(ErrorCode::kNotFound, fmt::format("job {}: there is no file of it", id));
}

std::string JobsText(const std::vector<JobFacts>& jobs) {
  std::string text = R"({"jobs":[)";
  for (const JobFacts& job : jobs) {
    if (&job != jobs.data()) text += ',';
    text += R"({"id":)";
    json::AppendString(job.id, text);
    text += R"(,"what":)";
    json::AppendString(job.what, text);
    text += R"(,"state":)";
    json::AppendString(JobStateName(job.state), text);
    text += fmt::format(R"(,"progress":{:.4g},"error":)", job.progress);
    json::AppendString(job.error, text);
    text += R"(,"file":)";
    json::AppendString(job.file ? job.file->name : std::string(), text);
    text += '}';
  }
  text += "]}";
  return text;
}

}  // namespace plumbline::view
