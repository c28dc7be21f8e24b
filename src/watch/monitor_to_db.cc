#include "watch/monitor_to_db.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "formats/table/monitor_trend.h"
#include "load/monitor_files.h"

namespace plumbline {
namespace {

using load::MonitorDirectory;
using load::MonitorFile;
using load::MonitorRow;
using trend_db::Row;

struct MonitorRankFile {
  int64_t rank = 0;
  std::string path;
  size_t directory = 0;
  std::optional<int64_t> end;  // the first step of a later directory of the rank
};

// What stands in the files, before anything is written.
struct MonitorContents {
  std::map<std::string, std::vector<MonitorRankFile>, std::less<>> files;  // by metric
  monitor_trend::Contents statistics;
  std::map<int64_t, int64_t> micro_steps;  // step -> how many, of the rank that has most
  int64_t max_rank = 0;
  uint64_t all = 0;  // files
};

class MonitorScanner {
 public:
  MonitorScanner(const DataToDbOptions& options, DataToDbReport& report)
      : options_(options), report_(report) {}

  Result<MonitorContents> Run(const std::string& data) {
    PL_TRY_ASSIGN(const auto directories, load::NeedMonitorDirectories(data));
    damage_.TakeBrokenLinks(data);
    for (size_t i = 0; i < directories.size(); ++i) {
      const bool is_later = i > 0 && directories[i - 1].rank == directories[i].rank;
      List(directories[i], is_later ? &directories[i - 1] : nullptr);
    }
    report_.directories = directories.size();
    if (contents_.all == 0) {
      if (damage_.first_error) return *damage_.first_error;
      return Error(ErrorCode::kNotFound,
                   fmt::format("{}: no csv file (expected names such as grad_reduced_0-0.csv)",
                               directories.front().path));
    }
    ReadAll();
    for (const auto& [kind, count] : others_) {
      report_.notes.push_back(
          fmt::format("{} files of {} are not imported: the viewer has no place "
                      "for them",
                      count, kind));
    }
    if (contents_.micro_steps.empty()) {
      if (damage_.first_error) return *damage_.first_error;
      return Error(ErrorCode::kNotFound, fmt::format("{}: no row in any csv file", data));
    }
    report_.damage = damage_.text();
    report_.warnings = std::move(damage_.sentences);
    return std::move(contents_);
  }

 private:
  // `later`: of the same rank, whose rows go first.
  void List(const MonitorDirectory& directory, const MonitorDirectory* later) {
    if (later != nullptr) {
      report_.notes.push_back(fmt::format("rank {}: from its first step on {} counts, and not {}",
                                          directory.rank, later->name, directory.name));
    }
    ++place_;
    contents_.max_rank = std::max(contents_.max_rank, directory.rank);
    for (const MonitorFile& file : damage_.FilesOf(directory)) {
      const std::string_view metric = monitor_trend::MetricOf(file.kind);
      if (metric.empty()) {
        ++others_[file.kind];
        continue;
      }
      contents_.files[std::string(metric)].push_back(
          {directory.rank, file.path, place_, std::nullopt});
      ++contents_.all;
    }
  }

  void ReadAll() {
    uint64_t done = 0;
    for (auto& entry : contents_.files) {
      for (MonitorRankFile& file : entry.second) {
        if (options_.progress) options_.progress(done++, 2 * contents_.all);
        resumed_.Begin(file.directory);
        file.end = resumed_.EndOf(file.rank, entry.first);
        ReadOne(entry.first, file);
      }
    }
  }

  void ReadOne(const std::string& metric, const MonitorRankFile& file) {
    const auto take = [&](auto names, MonitorRow& row) -> Status {
      if (!file.end || row.step < *file.end) Take(metric, file, names, row);
      return {};
    };
    damage_.Take(file.path, load::VisitMonitorFile(file.path, metric, take));
  }

  void Take(const std::string& metric, const MonitorRankFile& file,
            std::span<const std::string> names, const MonitorRow& row) {
    resumed_.Take(file.rank, metric, row.step);
    auto& statistics = contents_.statistics[metric];  // of those with rows
    for (const std::string& name : names) {
      if (monitor_trend::IsStatistic(name)) statistics.insert(name);
    }
    int64_t& count = contents_.micro_steps[row.step];
    count = std::max(count, row.micro_step + 1);
  }

  const DataToDbOptions& options_;
  DataToDbReport& report_;
  MonitorContents contents_;
  load::MonitorDamage damage_;
  std::map<std::string, uint64_t> others_;
  size_t place_ = 0;  // of the directory that is listed
  load::ResumedRows resumed_;
};

// Writes the rows of all files.
class MonitorImporter {
 public:
  MonitorImporter(trend_db::Writer& writer, const NameMapping& mapping,
                  const MonitorContents& contents, std::vector<std::string> statistics,
                  DataToDbReport& report)
      : writer_(writer), mapping_(mapping), statistics_(std::move(statistics)), report_(report) {
    for (const auto& [step, count] : contents.micro_steps) {
      first_of_step_[step] = all_micro_steps_;
      all_micro_steps_ += count;
    }
  }

  // `metric`: the place of `kind` among those of the database.
  Status Import(const MonitorRankFile& file, std::string_view kind, size_t metric) {
    PL_TRY(writer_.Begin());
    Status written;
    // What cannot be read was told by the scan.
    (void)load::VisitMonitorFile(file.path, kind, [&](auto names, MonitorRow& row) -> Status {
      if (file.end && row.step >= *file.end) {
        ++report_.of_earlier;
        return {};
      }
      written = Add(file.rank, metric, names, row);
      return written;
    });
    PL_TRY(std::move(written));
    return writer_.Commit();
  }

  [[nodiscard]] int64_t all_micro_steps() const { return all_micro_steps_; }

 private:
  Status Add(int64_t rank, size_t metric, std::span<const std::string> names, MonitorRow& row) {
    Row out;
    out.rank = rank;
    out.metric = metric;
    out.target = MapName(std::move(row.name), mapping_);
    out.vpp_stage = row.vpp_stage;
    if (report_.micro_steps) {
      out.step = first_of_step_.at(row.step) + row.micro_step;
    } else {
      out.step = row.step;
      out.micro_step = row.micro_step;
    }
    for (const std::string& statistic : statistics_) {
      const auto found = std::ranges::find(names, statistic);
      const auto value = found == names.end()
                             ? std::nullopt
                             : row.values[static_cast<size_t>(found - names.begin())];
      out.values.push_back(value ? trend_db::ValueOf(*value) : std::nullopt);
    }
    PL_TRY_ASSIGN(const bool is_new, writer_.Add(out));
    ++(is_new ? report_.rows[metric] : report_.left_out);
    return {};
  }

  trend_db::Writer& writer_;
  const NameMapping& mapping_;
  const std::vector<std::string> statistics_;
  DataToDbReport& report_;
  std::map<int64_t, int64_t> first_of_step_;
  int64_t all_micro_steps_ = 0;
};

}  // namespace

Result<DataToDbReport> MonitorToDb(const std::string& data, const std::string& output,
                                   const DataToDbOptions& options) {
  DataToDbReport report;
  report.micro_steps = options.micro_steps.value_or(true);
  PL_TRY_ASSIGN(const NameMapping mapping, ReadMapping(options.mapping_path));
  PL_TRY_ASSIGN(const MonitorContents contents, MonitorScanner(options, report).Run(data));
  trend_db::Form form = monitor_trend::FormOf(contents.statistics);
  report.metrics = form.metrics;
  report.rows.resize(form.metrics.size());
  PL_TRY_ASSIGN(NewTrendDb database,
                NewDatabase(output, monitor_trend::kDatabase, form, &monitor_trend::TagsOf));
  report.path = database.path;
  MonitorImporter importer(database.writer, mapping, contents, form.statistics, report);
  uint64_t done = contents.all;
  for (size_t metric = 0; metric < form.metrics.size(); ++metric) {
    for (const MonitorRankFile& file : contents.files.find(form.metrics[metric])->second) {
      if (options.progress) options.progress(done++, 2 * contents.all);
      PL_TRY(importer.Import(file, form.metrics[metric], metric));
    }
  }
  if (options.progress) options.progress(done, done);
  report.max_rank = contents.max_rank;
  report.min_step = report.micro_steps ? 0 : contents.micro_steps.begin()->first;
  report.max_step =
      report.micro_steps ? importer.all_micro_steps() - 1 : contents.micro_steps.rbegin()->first;
  report.targets = database.writer.target_count();
  PL_TRY(database.writer.Finish({report.max_rank, report.min_step, report.max_step}));
  if (database.is_replacement) {
    report.warnings.push_back(fmt::format("{}: the existing database was replaced", report.path));
  }
  return report;
}

}  // namespace plumbline
