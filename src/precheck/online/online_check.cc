#include "precheck/online/online_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/file/file.h"
#include "precheck/call_flow.h"
#include "precheck/executor_pool.h"
#include "precheck/online/online_calls.h"
#include "precheck/precheck_report.h"
#include "precheck/result_files.h"

namespace plumbline::precheck {
namespace {

constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::seconds kDiskPause{1};
constexpr std::string_view kSpool = "online_spool";
constexpr int kMostBenchWorkers = 64;

std::string CountsText(const RankFiles::Counts& counts) {
  constexpr CheckStatus kShown[] = {CheckStatus::kError, CheckStatus::kWarning, CheckStatus::kPass,
                                    CheckStatus::kSkip};
  std::vector<std::string> parts;
  for (const CheckStatus status : kShown) {
    const uint64_t count = counts[static_cast<size_t>(status)];
    if (count > 0) parts.push_back(fmt::format("{} {}", count, StatusWord(status)));
  }
  return parts.empty() ? "no calls" : fmt::format("{}", fmt::join(parts, ", "));
}

class OnlineCheck {
 public:
  explicit OnlineCheck(const OnlineOptions& options)
      : options_(options), spool_(JoinPath(options.check.output_dir, kSpool)) {}

  Result<OnlineReport> Run() {
    PL_TRY(MakeDirectories(spool_));
    PL_TRY_ASSIGN(lock_, File::OpenUpdate(JoinPath(spool_, "lock")));
    PL_TRY_ASSIGN(const bool is_alone, lock_.TryLock());
    if (!is_alone) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: another online pre-check writes here. Name another directory",
                               options_.check.output_dir));
    }
    timestamp_ = ResultTimestamp(options_.check.output_dir);
    PL_TRY(OpenEarlier());
    PL_TRY(StartPool());
    online::ReceiverOptions receiver = options_.receiver;
    receiver.spool = spool_;
    PL_TRY_ASSIGN(receiver_, online::Receiver::Start(receiver, finished_));
    // An interpreter without the framework is told before a training comes.
    PL_TRY(pool_->AwaitReady());
    if (options_.on_listening) options_.on_listening(receiver_->port());
    PL_TRY(JudgeAll());
    FillReport();
    receiver_.reset();
    if (!report_.was_interrupted && report_.problem.empty()) PL_TRY(Finish());
    return std::move(report_);
  }

 private:
  plumbline::Status OpenEarlier() {
    PL_TRY_ASSIGN(const std::vector<int32_t> ranks, RankFiles::RanksIn(spool_));
    for (const int32_t rank : ranks) {
      PL_TRY_ASSIGN(RankFiles files, RankFiles::Open(FilesPlace(), rank, finished_));
      files_.emplace(rank, std::move(files));
    }
    return {};
  }

  plumbline::Status StartPool() {
    const PrecheckOptions& check = options_.check;
    const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    PoolOptions pool;
    pool.program.python = check.python;
    pool.device_type = options_.runs_device ? check.device_type : "cpu";
    pool.devices = check.devices;
    pool.device_workers = static_cast<int>(check.devices.size());
    pool.bench_workers =
        std::min(check.bench_workers > 0 ? check.bench_workers : cores, kMostBenchWorkers);
    pool.threads = check.worker_threads;
    pool.call_limit = check.api_timeout;
    const auto workers = static_cast<size_t>(pool.bench_workers);
    pool.slots = std::clamp(2 * workers + 2, kFewestSlots, kMostSlots);
    PL_TRY_ASSIGN(pool_, ExecutorPool::Start(pool));
    return {};
  }

  [[nodiscard]] bool IsStopped() const {
    return options_.check.is_stopped && options_.check.is_stopped();
  }

  plumbline::Status JudgeAll() {
    while (!IsStopped()) {
      std::optional<online::ReceivedStep> step = receiver_->NextStep(kTick);
      if (!step && receiver_->IsOver()) step = receiver_->NextStep({});
      if (step) {
        PL_TRY(JudgeStep(*step));
        if (gives_up_) return {};
      } else if (receiver_->IsOver()) {
        return {};
      }
    }
    report_.was_interrupted = true;
    return {};
  }

  [[nodiscard]] RankFiles::Place FilesPlace() const {
    return {options_.check.output_dir, spool_, timestamp_, options_.runs_device};
  }

  Result<RankFiles*> FilesOf(int32_t rank) {
    if (const auto known = files_.find(rank); known != files_.end()) return &known->second;
    PL_TRY_ASSIGN(RankFiles files, RankFiles::Open(FilesPlace(), rank, finished_));
    return &files_.emplace(rank, std::move(files)).first->second;
  }

  plumbline::Status JudgeStep(const online::ReceivedStep& step) {
    std::vector<CheckedCall> outcomes;
    {
      PL_TRY_ASSIGN(const std::unique_ptr<OnlineCalls> calls,
                    OnlineCalls::Open(step, options_.check.plan, options_.runs_device));
      outcomes.resize(calls->size());
      std::vector<size_t> order = calls->Order();
      std::vector<bool> runs(calls->size());
      for (const size_t index : order) runs[index] = true;
      for (size_t i = 0; i < calls->size(); ++i) {
        if (!runs[i]) outcomes[i].outcome = calls->Unrunnable(i);
        if (options_.runs_device) outcomes[i].of_device.emplace();
      }
      FlowOptions flow;
      flow.is_stopped = options_.check.is_stopped;
      PL_TRY_ASSIGN(const FlowEnd end,
                    RunCalls(*calls, order, *pool_, flow,
                             [&](size_t index, CallOutcome outcome) -> plumbline::Status {
                               CheckedCall& checked = outcomes[index];
                               checked.outcome = std::move(outcome);
                               if (checked.of_device) {
                                 checked.of_device = calls->DeviceOutcome(index);
                               }
                               return {};
                             }));
      if (end.was_stopped) return {};  // it is judged again when the run goes on
    }
    PL_TRY(Write(step, outcomes));
    return {};
  }

  // Where the disk is full nothing is given up while trainings send: they drop what finds no room,
  // and count it.
  plumbline::Status Write(const online::ReceivedStep& step,
                          const std::vector<CheckedCall>& outcomes) {
    const JudgedStep judged{step.session, step.step, step.last_sequence};
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      plumbline::Status written;
      const Result<RankFiles*> files = FilesOf(step.rank);
      const RankFiles::Counts before = files ? (*files)->counts() : RankFiles::Counts{};
      if (files) written = (*files)->Append(judged, outcomes, options_.check.precision);
      const Error* const error = !files ? &files.error() : !written ? &written.error() : nullptr;
      if (error == nullptr) {
        Tell(step, before, (*files)->counts());
        break;
      }
      if (error->code() != ErrorCode::kIo) return *error;
      if (std::exchange(report_.problem, error->message()) != error->message()) {
        Say(fmt::format("{}. It is tried again; make room", error->message()));
      }
      gives_up_ = receiver_->IsIdleSince(begin);
      if (IsStopped() || gives_up_) return {};
      std::this_thread::sleep_for(kDiskPause);
    }
    report_.problem.clear();
    for (const CheckedCall& call : outcomes) KeepWorst(call.outcome);
    receiver_->Finished(step);
    return {};
  }

  void KeepWorst(const CallOutcome& outcome) {
    const OutputRow* const row = WorstRow(outcome);
    if (row == nullptr || !IsWrong(row->status)) return;
    const bool is_worse =
        !report_.worst || row->status > report_.worst->status ||
        (row->status == report_.worst->status && SeverityOf(*row) > SeverityOf(*report_.worst));
    if (is_worse) report_.worst = *row;
  }

  void Tell(const online::ReceivedStep& step, const RankFiles::Counts& before,
            const RankFiles::Counts& after) const {
    RankFiles::Counts counts{};
    for (size_t i = 0; i < counts.size(); ++i) counts[i] = after[i] - before[i];
    Say(fmt::format("rank {} step {}: {}{}", step.rank, step.step, CountsText(counts),
                    step.is_whole ? "" : " (its end did not come)"));
  }

  void Say(const std::string& line) const {
    if (options_.on_step) options_.on_step(line);
  }

  void FillReport() {
    report_.was_idle = receiver_->was_idle();
    std::map<int32_t, RankReport> ranks;
    for (const auto& [rank, files] : files_) {
      RankReport& report = ranks[rank];
      report.counts = files.counts();
      report.steps = files.steps();
      report.result_path = files.result_path();
      report.sided_path = files.sided_path();
    }
    for (const online::SessionFacts& session : receiver_->Sessions()) {
      RankReport& report = ranks[session.rank];
      report.dropped += session.dropped;
      report.lost += session.lost;
      report.has_stopped = report.has_stopped && session.has_stopped;
    }
    for (auto& [rank, report] : ranks) {
      report.rank = rank;
      report_.ranks.push_back(report);
    }
    for (const int64_t rank : options_.receiver.ranks) {
      if (!ranks.contains(static_cast<int32_t>(rank))) report_.absent.push_back(rank);
    }
  }

  // What was not checked stands in the files too; then nothing is left to go on with.
  plumbline::Status Finish() {
    for (const RankReport& rank : report_.ranks) {
      const auto at = files_.find(rank.rank);
      if (at == files_.end()) continue;
      RankFiles& files = at->second;
      const auto remark = [&](uint64_t count, std::string_view what) -> plumbline::Status {
        if (count == 0) return {};
        return files.AppendRemark("(not checked)",
                                  fmt::format("missing-data: {} records {}", count, what));
      };
      PL_TRY(remark(rank.dropped, "were dropped by the training"));
      PL_TRY(remark(rank.lost, "came and could not be kept: the disk was full"));
      if (!rank.has_stopped) {
        PL_TRY(files.AppendRemark("(not checked)", "missing-data: the training ended or was cut off "
                                                   "without saying how many calls it had left"));
      }
      PL_TRY(files.Finish());
    }
    files_.clear();
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(spool_));
    for (const std::string& name : names) PL_TRY(RemoveFile(JoinPath(spool_, name)));
    PL_TRY(lock_.Close());
    PL_TRY(RemoveEmptyDirectory(spool_));
    return {};
  }

  static plumbline::Status RemoveEmptyDirectory(const std::string& path) {
    if (Syscalls().unlinkat(AT_FDCWD, path.c_str(), AT_REMOVEDIR) == 0) return {};
    return ErrnoError(errno, path, "remove");
  }

  const OnlineOptions& options_;
  const std::string spool_;
  std::string timestamp_;
  File lock_;
  std::map<uint64_t, uint64_t> finished_;
  std::map<int32_t, RankFiles> files_;
  std::unique_ptr<ExecutorPool> pool_;
  std::unique_ptr<online::Receiver> receiver_;
  OnlineReport report_;
  bool gives_up_ = false;  // no room on the disk, and nothing has come for too long
};

}  // namespace

bool OnlineReport::is_complete() const {
  if (was_idle || was_interrupted || !problem.empty() || !absent.empty()) return false;
  return std::ranges::all_of(ranks, [](const RankReport& rank) {
    return rank.dropped == 0 && rank.lost == 0 && rank.has_stopped;
  });
}

Result<OnlineReport> RunOnlineCheck(const OnlineOptions& options) {
  return OnlineCheck(options).Run();
}

std::string OnlineAnswer(const OnlineReport& report) {
  RankFiles::Counts all{};
  for (const RankReport& rank : report.ranks) {
    for (size_t i = 0; i < all.size(); ++i) all[i] += rank.counts[i];
  }
  const uint64_t judged = all[static_cast<size_t>(CheckStatus::kPass)] +
                          all[static_cast<size_t>(CheckStatus::kWarning)] +
                          all[static_cast<size_t>(CheckStatus::kError)];
  std::string text;
  if (report.worst && report.worst->status == CheckStatus::kError) {
    text = fmt::format("wrong: {}: {}\n", OutputText(report.worst->name), ReasonText(*report.worst));
  } else if (judged == 0) {
    text = "nothing was judged\n";
  } else if (report.is_complete()) {
    text = fmt::format("no API is wrong in {} calls\n", judged);
  } else {
    text = fmt::format("no API is wrong in {} calls; others were not checked\n", judged);
  }
  for (const RankReport& rank : report.ranks) {
    text += fmt::format("rank {}: {} in {} steps", rank.rank, CountsText(rank.counts), rank.steps);
    text += fmt::format("; {} records dropped by the training, {} lost here", rank.dropped, rank.lost);
    if (!rank.has_stopped) text += "; it ended without saying stop: what it had left is not known";
    text += '\n';
    for (const std::string& path : {rank.result_path, rank.sided_path}) {
      if (!path.empty()) text += fmt::format("  {}\n", path);
    }
  }
  if (!report.absent.empty()) {
    text += fmt::format("never came: rank {}\n", fmt::join(report.absent, ", "));
  }
  if (report.was_idle) text += "ended because nothing came for too long (--idle_timeout)\n";
  if (!report.problem.empty()) text += report.problem + "\n";
  return text;
}

}  // namespace plumbline::precheck
