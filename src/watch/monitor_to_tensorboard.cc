#include "watch/monitor_to_tensorboard.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "formats/table/event_file.h"
#include "formats/table/monitor_kinds.h"
#include "load/monitor_files.h"

namespace plumbline {
namespace {

using load::MonitorDirectory;
using load::MonitorFile;
using load::MonitorRow;

constexpr std::array<std::string_view, 7> kScalars = {"norm", "min", "max", "zeros",
                                                      "nans", "id",  "mean"};

// What becomes one event file: the directories of a rank, the earliest first.
struct EventJob {
  int64_t rank = 0;
  std::string kind;
  std::vector<std::vector<std::string>> directories;  // paths of each, by step
};

struct JobOutcome {
  uint64_t scalars = 0, left_out = 0, repeated = 0;
  bool has_replaced = false;
  load::MonitorDamage damage;
};

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The directory that upstream would make.
std::string UsualOutput(const std::string& data) {
  constexpr auto kShanghai = std::chrono::hours(8);
  const auto now = std::chrono::system_clock::now() + kShanghai;
  const std::tm time = fmt::gmtime(std::chrono::system_clock::to_time_t(now));
  return JoinPath(data, fmt::format("{:%b%d_%H-%M-%S}-csv2tensorboard_by_step", time));
}

std::string EventFileName(double seconds) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("{}{}.{}.{}.0", event_file::kNameStart, static_cast<int64_t>(seconds),
                     host[0] == '\0' ? "host" : host.data(), ::getpid());
}

// Removes event files that an earlier run left, also unfinished ones. Whether there were any.
Result<bool> RemoveEventFiles(const std::string& directory) {
  PL_TRY_ASSIGN(const auto names, ListDirectory(directory));
  bool has_removed = false;
  for (const std::string& name : names) {
    const std::string_view bare = std::string_view(name).substr(name.starts_with('.') ? 1 : 0);
    const bool is_finished = name.starts_with(event_file::kNameStart);
    if (!is_finished && !bare.starts_with(event_file::kUnfinished)) continue;
    PL_TRY(RemoveFile(JoinPath(directory, name)));
    has_removed = has_removed || is_finished;
  }
  return has_removed;
}

std::string DirectoryOfJob(const EventJob& job, const std::string& output) {
  return JoinPath(JoinPath(output, fmt::format("rank{}", job.rank)), job.kind);
}

// Writes the event file of one job.
class EventImport {
 public:
  EventImport(const EventJob& job, JobOutcome& outcome) : job_(job), outcome_(outcome) {}

  Status Run(const std::string& output) {
    const std::string directory = DirectoryOfJob(job_, output);
    PL_TRY(MakeDirectories(directory));
    PL_TRY_ASSIGN(outcome_.has_replaced, RemoveEventFiles(directory));
    const double now = SecondsNow();
    PL_TRY_ASSIGN(event_file::Writer writer,
                  event_file::Writer::Create(directory, EventFileName(now), now));
    const auto ends = EndsOfDirectories();
    for (size_t i = 0; i < ends.size(); ++i) {
      for (const std::string& path : job_.directories[i]) PL_TRY(Add(path, ends[i], writer));
    }
    return writer.Close();
  }

 private:
  // Of each directory the step from which on its rows do not count.
  std::vector<std::optional<int64_t>> EndsOfDirectories() {
    std::vector<std::optional<int64_t>> ends(job_.directories.size());
    load::ResumedRows resumed;
    for (size_t i = ends.size(); i-- > 0;) {
      resumed.Begin(i + 1);
      ends[i] = resumed.EndOf(job_.rank, job_.kind);
      // There are no directories before the first one, for whose rows this would tell.
      if (i > 0) TakeFirstStep(job_.directories[i], resumed);
    }
    return ends;
  }

  void TakeFirstStep(const std::vector<std::string>& paths, load::ResumedRows& resumed) {
    for (const std::string& path : paths) {
      bool has_rows = false;
      // What cannot be read is told when its rows are written.
      (void)load::VisitMonitorFile(path, job_.kind, [&](auto, const MonitorRow& row) -> Status {
        has_rows = true;
        resumed.Take(job_.rank, job_.kind, row.step);
        return {};
      });
      if (has_rows) break;  // the next files have later steps
    }
  }

  Status Add(const std::string& path, std::optional<int64_t> end, event_file::Writer& writer) {
    std::vector<MonitorRow> rows;
    std::vector<std::string> statistics;
    outcome_.damage.Take(
        path, load::VisitMonitorFile(path, job_.kind, [&](auto names, MonitorRow& row) {
          if (rows.empty()) statistics.assign(names.begin(), names.end());
          if (end && row.step >= *end) {
            ++outcome_.left_out;
          } else {
            rows.push_back(std::move(row));
          }
          return Status();
        }));
    std::ranges::stable_sort(rows, {}, &MonitorRow::step);
    int64_t step = -1;
    std::unordered_set<std::string> of_step;
    for (const MonitorRow& row : rows) {
      if (row.step != step) of_step.clear();
      step = row.step;
      // The first of several rows stays, as in the database.
      if (!of_step.insert(fmt::format("{}\n{}\n{}", row.vpp_stage, row.micro_step, row.name))
               .second) {
        ++outcome_.repeated;
        continue;
      }
      PL_TRY(AddRow(row, statistics, writer));
    }
    return {};
  }

  Status AddRow(const MonitorRow& row, const std::vector<std::string>& statistics,
                event_file::Writer& writer) {
    const bool has_micro_steps = HasMicroSteps(job_.kind);
    const std::string micro = has_micro_steps ? fmt::format(":micro{}", row.micro_step) : "";
    const std::string start = fmt::format("vp{}:{}{}/", row.vpp_stage, row.name, micro);
    for (size_t i = 0; i < statistics.size(); ++i) {
      if (!row.values[i] || std::ranges::find(kScalars, statistics[i]) == kScalars.end()) continue;
      PL_TRY(writer.AddScalar(start + statistics[i], row.step, static_cast<float>(*row.values[i])));
      ++outcome_.scalars;
    }
    return {};
  }

  const EventJob& job_;
  JobOutcome& outcome_;
};

Result<std::optional<int64_t>> TimeOption(std::string_view name, const std::string& text) {
  if (text.empty()) return std::optional<int64_t>();
  const auto time = load::MonitorTime(text);
  if (time) return time;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: \"{}\" is no time of a monitor (expected such as Dec03_21-34-40)",
                           name, text));
}

Result<std::vector<MonitorDirectory>> ChosenDirectories(const std::string& data,
                                                        const TensorboardOptions& options) {
  PL_TRY_ASSIGN(const auto start, TimeOption("time_start", options.time_start));
  PL_TRY_ASSIGN(const auto end, TimeOption("time_end", options.time_end));
  if (start && end && *start > *end) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("time_start({}) greater than time_end({})", options.time_start,
                             options.time_end));
  }
  PL_TRY_ASSIGN(std::vector<MonitorDirectory> directories, load::NeedMonitorDirectories(data));
  std::erase_if(directories, [&](const MonitorDirectory& directory) {
    return (start && directory.time < *start) || (end && directory.time > *end);
  });
  if (!directories.empty()) return directories;
  return Error(ErrorCode::kNotFound, fmt::format("{}: no directory of a monitor from {} to {}",
                                                 data, start ? options.time_start : "the first",
                                                 end ? options.time_end : "the last"));
}

Status CheckKinds(const std::vector<std::string>& kinds) {
  const auto& known = TensorboardKinds();
  for (const std::string& kind : kinds) {
    if (std::ranges::find(known, kind) != known.end()) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("data type({}) is not supported, supported data type: {}", kind,
                             fmt::join(known, ", ")));
  }
  return {};
}

std::vector<EventJob> JobsOf(const std::vector<MonitorDirectory>& directories,
                             const std::vector<std::string>& kinds, load::MonitorDamage& damage) {
  std::map<std::pair<int64_t, std::string>, EventJob> jobs;
  for (auto directory = directories.rbegin(); directory != directories.rend(); ++directory) {
    std::map<std::string, std::vector<std::string>> found;
    for (const MonitorFile& file : damage.FilesOf(*directory)) {
      if (std::ranges::find(kinds, file.kind) == kinds.end()) continue;
      found[file.kind].push_back(file.path);
    }
    for (auto& [kind, paths] : found) {
      EventJob& job = jobs[{directory->rank, kind}];
      job.rank = directory->rank;
      job.kind = kind;
      job.directories.push_back(std::move(paths));
    }
  }
  std::vector<EventJob> list;
  for (auto& [key, job] : jobs) list.push_back(std::move(job));
  return list;
}

void RunJobs(const std::vector<EventJob>& jobs, const TensorboardOptions& options,
             const std::string& output, std::vector<JobOutcome>& outcomes,
             std::vector<Status>& statuses) {
  std::mutex mutex;
  uint64_t done = 0;
  const auto run = [&](size_t i) {
    statuses[i] = EventImport(jobs[i], outcomes[i]).Run(output);
    const std::scoped_lock lock(mutex);
    ++done;
    if (options.progress) options.progress(done, jobs.size());
  };
  const auto run_all = [&] { ParallelFor(jobs.size(), run); };
  if (options.threads > 0) {
    RunWithThreads(options.threads, run_all);
  } else {
    run_all();
  }
}

}  // namespace

const std::vector<std::string>& TensorboardKinds() {
  static const std::vector<std::string> kKinds = {
      "actv",         "actv_grad", "exp_avg",      "exp_avg_sq",    "grad_unreduced",
      "grad_reduced", "param",     "param_origin", "param_updated", "other"};
  return kKinds;
}

Result<TensorboardReport> MonitorToTensorboard(const std::string& data, const std::string& output,
                                               const TensorboardOptions& options) {
  PL_TRY(CheckKinds(options.kinds));
  PL_TRY_ASSIGN(const auto directories, ChosenDirectories(data, options));
  load::MonitorDamage damage;
  damage.TakeBrokenLinks(data);
  const std::vector<EventJob> jobs =
      JobsOf(directories, options.kinds.empty() ? TensorboardKinds() : options.kinds, damage);
  if (jobs.empty()) {
    if (damage.first_error) return *damage.first_error;
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: no csv file of {} (expected names such as grad_reduced_0-0.csv)",
                    directories.front().path,
                    options.kinds.empty() ? std::string("a known kind")
                                          : fmt::format("{}", fmt::join(options.kinds, ", "))));
  }
  TensorboardReport report;
  report.path = output.empty() ? UsualOutput(data) : output;
  report.directories = directories.size();
  PL_TRY(MakeDirectories(report.path));
  std::vector<JobOutcome> outcomes(jobs.size());
  std::vector<Status> statuses(jobs.size());
  RunJobs(jobs, options, report.path, outcomes, statuses);
  // All of it or nothing: curves of some ranks would be taken for all.
  const auto remove_all = [&] {
    for (const EventJob& job : jobs) (void)RemoveEventFiles(DirectoryOfJob(job, report.path));
  };
  for (const Status& status : statuses) {
    if (status) continue;
    remove_all();
    return status.error();
  }
  bool has_replaced = false;
  for (JobOutcome& outcome : outcomes) {
    report.scalars += outcome.scalars;
    report.left_out += outcome.left_out;
    report.repeated += outcome.repeated;
    has_replaced = has_replaced || outcome.has_replaced;
    damage.Take(std::move(outcome.damage));
  }
  report.damage = damage.text();
  report.warnings = std::move(damage.sentences);
  report.event_files = jobs.size();
  if (report.scalars == 0) {
    remove_all();
    if (damage.first_error) return *damage.first_error;
    return Error(ErrorCode::kNotFound, fmt::format("{}: no row in any csv file", data));
  }
  if (has_replaced) {
    report.warnings.push_back(fmt::format(
        "{}: existing event files of these ranks and kinds were replaced", report.path));
  }
  return report;
}

}  // namespace plumbline
