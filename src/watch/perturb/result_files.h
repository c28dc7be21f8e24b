// The files of the perturbation check (docs/reference/perturbation-check.md).

#ifndef PLUMBLINE_WATCH_PERTURB_RESULT_FILES_H_
#define PLUMBLINE_WATCH_PERTURB_RESULT_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "plumbline/result.h"

namespace plumbline::perturb {

// Names of the files and their columns.
inline constexpr std::string_view kRowsName = "free_benchmark.csv";
inline constexpr std::string_view kFixName = "free_benchmark_fix.csv";
inline constexpr std::string_view kSummaryName = "free_benchmark_summary.csv";
inline constexpr std::string_view kThresholdName = "free_benchmark_threshold.json";
std::span<const std::string_view> RowColumns();
std::span<const std::string_view> FixColumns();
std::span<const std::string_view> SummaryColumns();

// One line of csv with CRLF at its end, cells quoted where they must be.
std::string CsvLine(std::span<const std::string> cells);
std::string CsvLine(std::span<const std::string_view> cells);

// Where one process writes: {dump_path}/step{N}/rank{R}/ for rows, {dump_path}/rank{R}/ for what
// concerns the run. Directories and files are made when there is something to say. A file of an
// earlier run is kept as {name}.{n}; beside another process that writes the same file,
// {stem}_{pid}.csv is written. Nothing is raised: the first failure is logged, lines are counted.
class ResultFiles {
 public:
  explicit ResultFiles(std::string dump_path) : dump_path_(std::move(dump_path)) {}

  void BeginStep(int64_t step, std::optional<int> rank);
  // Appends a line at once: what a killed process has written is complete.
  void Append(std::string_view name, std::span<const std::string_view> columns,
              const std::string& line);
  // Replaces a file of the run as a whole.
  void Replace(std::string_view name, std::string_view text);

  [[nodiscard]] uint64_t lost_lines() const { return lost_lines_; }
  // Directory of the files of the run, and of those of the step.
  [[nodiscard]] std::string run_directory() const;
  [[nodiscard]] std::string step_directory() const;

 private:
  Result<File*> FileNamed(std::string_view name, std::span<const std::string_view> columns);
  Result<File> OpenNew(const std::string& path);
  void Complain(const Error& error);

  std::string dump_path_;
  int64_t step_ = 0;
  std::optional<int> rank_;
  std::map<std::string, File, std::less<>> files_;  // of the step, by name
  std::set<std::string> own_;                       // paths that this process began
  uint64_t lost_lines_ = 0;
  bool has_complained_ = false;
};

}  // namespace plumbline::perturb

#endif  // PLUMBLINE_WATCH_PERTURB_RESULT_FILES_H_
