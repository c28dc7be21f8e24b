#include "watch/live/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file/file.h"
#include "formats/table/monitor_directory.h"
#include "watch/live/step_files.h"

namespace plumbline::watch {
namespace {

constexpr size_t kMostWaiting = 2;

// The latest one of the rank between both times of append_output; empty for none.
Result<std::string> DirectoryToAppend(const MonitorConfig& config, const std::string& output,
                                      int64_t rank) {
  const auto from = MonitorTime(config.append_from);
  const auto to = MonitorTime(config.append_to);
  if (!from || !to || *from > *to) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("append_output: is [\"{}\", \"{}\"] (expected two ascending times such "
                    "as \"Dec03_21-34-40\")",
                    config.append_from, config.append_to));
  }
  PL_TRY_ASSIGN(const auto directories, ListMonitorDirectories(output));
  for (const MonitorDirectory& directory : directories) {  // the latest of a rank first
    const bool is_between = directory.time >= *from && directory.time <= *to;
    if (directory.rank == rank && is_between) return directory.path;
  }
  return std::string();
}

}  // namespace

Result<std::string> MakeMonitorDirectory(const MonitorConfig& config, const MonitorPlace& place,
                                         const TrendModule* trend, std::string* warning) {
  const int64_t rank = place.rank.value_or(0);
  PL_TRY(MakeDirectories(place.output));
  if (!config.append_from.empty()) {
    PL_TRY_ASSIGN(const std::string found, DirectoryToAppend(config, place.output, rank));
    if (!found.empty()) {
      PL_TRY(TrimSteps(found, place.first_step));
      if (trend != nullptr) PL_TRY(trend->trim(found, rank, place.first_step));
      return found;
    }
    *warning = fmt::format(
        "append_output: no directory of rank {} between {} and {} in {}; a new "
        "one is made",
        rank, config.append_from, config.append_to, place.output);
  }
  std::string path = JoinPath(place.output, NewMonitorDirectoryName(rank));
  PL_TRY(MakeDirectories(path));
  return path;
}

Monitor::Monitor(const MonitorConfig& config, AlertPlace place, std::unique_ptr<StepSink> sink,
                 std::string alert_path, size_t ring)
    : sink_(std::move(sink)),
      alerts_(config, std::move(place)),
      alert_path_(std::move(alert_path)),
      ring_size_(ring) {}

Monitor::~Monitor() { Close(); }

void Monitor::Watch(std::unique_ptr<RuleWatch> rules) {
  rules_ = std::move(rules);
  messages_ = rules_->Limits();
}

const WatchedName* Monitor::Name(std::string_view text, int32_t vpp_stage, uint32_t group) {
  WatchedName& name = names_[{std::string(text), vpp_stage, group}];
  if (name.text.empty()) name = {std::string(text), vpp_stage, group};
  return &name;
}

void Monitor::Add(MonitorKind kind, const WatchedName* name, int32_t micro_step,
                  TensorValues values) {
  current_->of(kind).push_back({name, micro_step, calls_++, std::move(values)});
}

void Monitor::AddAdam(const WatchedName* name, const AdamHistograms& histograms) {
  current_->adam.push_back({name, histograms});
  ++calls_;
}

void Monitor::Commit(int64_t step) {
  ++epoch_;
  if (calls_ == 0) return;
  calls_ = 0;
  current_->step = step;
  last_ = std::exchange(current_, std::make_shared<StepRows>());
  if (ring_size_ > 0) ring_.push_back(last_);
  if (ring_.size() > ring_size_) ring_.pop_front();
  if (!thread_.is_here()) return;  // in a forked child the mutex may be locked for ever
  std::unique_lock lock(mutex_);
  if (is_closing_) return;
  if (!thread_->joinable()) *thread_ = std::thread([this] { Run(); });
  changed_->wait(lock, [&] { return waiting_.size() < kMostWaiting; });
  waiting_.push_back(last_);
  changed_->notify_all();
}

void Monitor::Drop() {
  ++epoch_;
  calls_ = 0;
  current_ = std::make_shared<StepRows>();
}

void Monitor::Flush() {
  if (!thread_.is_here()) return;
  std::unique_lock lock(mutex_);
  changed_->wait(lock, [&] { return waiting_.empty() && !is_writing_; });
}

void Monitor::Close() {
  if (!thread_.is_here()) {
    (void)sink_.release();  // its files are the parent's
    return;
  }
  {
    const std::unique_lock lock(mutex_);
    if (is_closing_) return;
    is_closing_ = true;
    changed_->notify_all();
  }
  if (thread_->joinable()) thread_->join();
  if (progress_) progress_->End(counts_);
  if (rules_ != nullptr) std::ranges::move(rules_->Summary(), std::back_inserter(messages_));
  if (!alert_path_.empty()) EndAlertFile(alert_path_, this);
  if (sink_ == nullptr) return;
  const Status closed = sink_->Close();
  if (!closed && !problem_) problem_ = closed.error().message();
}

void Monitor::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_->wait(lock, [&] { return !waiting_.empty() || is_closing_; });
    if (waiting_.empty()) return;
    const Rows rows = waiting_.front();
    waiting_.pop_front();
    is_writing_ = true;
    lock.unlock();
    WriteOut(*rows);
    lock.lock();
    is_writing_ = false;
    changed_->notify_all();
  }
}

void Monitor::WriteOut(const StepRows& rows) {
  Status written;
  if (sink_ != nullptr) written = sink_->Write(rows);
  std::vector<std::string> lines = alerts_.Check(rows);
  if (written && !lines.empty() && !alert_path_.empty()) {
    written = WriteAlertFile(alert_path_, this, alerts_.Document());
  }
  const size_t alerts = lines.size();
  if (rules_ != nullptr) {
    const Status kept = rules_->Look(rows, &lines);
    if (written) written = kept;
  }
  Count(rows, alerts);
  const std::scoped_lock lock(mutex_);
  std::ranges::move(lines, std::back_inserter(messages_));
  if (!written && !problem_) problem_ = written.error().message();
}

void Monitor::Count(const StepRows& rows, uint64_t alerts) {
  if (!progress_) return;
  counts_.step = rows.step;
  counts_.alerts += alerts;
  for (const auto& of_kind : rows.rows) counts_.rows += of_kind.size();
  if (rules_ != nullptr) counts_.hits = rules_->hits();
  if (sink_ != nullptr) counts_.bytes = sink_->bytes();
  progress_->Show(counts_);
}

const std::vector<Row>& Monitor::Latest(MonitorKind kind) const {
  const bool is_under_way = calls_ > 0 || last_ == nullptr;
  return is_under_way ? current_->of(kind) : last_->of(kind);
}

std::vector<std::string> Monitor::TakeMessages() {
  if (!thread_.is_here()) return {};
  const std::scoped_lock lock(mutex_);
  return std::exchange(messages_, {});
}

std::optional<std::string> Monitor::TakeProblem() {
  if (!thread_.is_here()) return {};
  const std::scoped_lock lock(mutex_);
  return std::exchange(problem_, std::nullopt);
}

}  // namespace plumbline::watch
