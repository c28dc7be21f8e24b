#include "watch/perturb/result_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/process/log.h"
#include "base/text/csv.h"
#include "store/run_layout.h"

namespace plumbline::perturb {
namespace {

// The first nine are upstream's.
constexpr std::string_view kRowColumns[] = {"rank",    "pert_mode", "stage", "step",
                                            "api_name", "max_rel",  "dtype", "shape",
                                            "output_index", "expected"};
constexpr std::string_view kFixColumns[] = {"rank", "step", "api_name", "max_abs",
                                            "changed_ratio"};
constexpr std::string_view kSummaryColumns[] = {
    "api",        "pert_mode",   "stage",       "calls",      "inconsistent", "max_rel",
    "first_step", "first_index", "unexplained", "expected",   "excess",       "skipped",
    "reason"};

std::string RankPart(std::optional<int> rank) { return run_layout::RankName(rank); }

}  // namespace

std::span<const std::string_view> RowColumns() { return kRowColumns; }
std::span<const std::string_view> FixColumns() { return kFixColumns; }
std::span<const std::string_view> SummaryColumns() { return kSummaryColumns; }

std::string CsvLine(std::span<const std::string> cells) {
  const std::vector<std::string_view> views(cells.begin(), cells.end());
  return CsvLine(std::span<const std::string_view>(views));
}

std::string CsvLine(std::span<const std::string_view> cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    csv::AppendExactly(cells[i], line);
  }
  return line + "\r\n";
}

void ResultFiles::BeginStep(int64_t step, std::optional<int> rank) {
  if (step == step_ && rank == rank_) return;
  files_.clear();
  step_ = step;
  rank_ = rank;
}

std::string ResultFiles::run_directory() const {
  return run_layout::RankDirectory(dump_path_, std::nullopt, rank_);
}

std::string ResultFiles::step_directory() const {
  return run_layout::RankDirectory(dump_path_, step_, rank_);
}

Result<File> ResultFiles::OpenNew(const std::string& path) {
  PL_TRY_ASSIGN(File file, File::OpenAppend(path));
  PL_TRY_ASSIGN(const bool is_locked, file.TryLock());
  if (!is_locked) {
    const std::string_view stem = std::string_view(path).substr(0, path.rfind('.'));
    const std::string other = fmt::format("{}_{}.csv", stem, getpid());
    LogWarning(fmt::format("{}: another process writes it; this one writes {}", path, other));
    return File::OpenAppend(other);
  }
  PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
  if (size == 0) return file;
  std::string kept;
  for (int n = 1; n == 1 || KindOf(kept) != PathKind::kMissing; ++n) {
    kept = fmt::format("{}.{}", path, n);
  }
  PL_TRY(RenameFile(path, kept));
  LogWarning(fmt::format("{}: the rows of an earlier run are now in {}", path, kept));
  PL_TRY_ASSIGN(File fresh, File::OpenAppend(path));
  PL_TRY(fresh.TryLock());
  return fresh;
}

Result<File*> ResultFiles::FileNamed(std::string_view name,
                                     std::span<const std::string_view> columns) {
  const auto open = files_.find(name);
  if (open != files_.end()) return &open->second;
  PL_TRY(OpenRankPlace({dump_path_, {run_layout::StepName(step_), RankPart(rank_)}}));
  const std::string path = JoinPath(step_directory(), name);
  const bool is_own = own_.contains(path);
  PL_TRY_ASSIGN(File file, is_own ? File::OpenAppend(path) : OpenNew(path));
  if (is_own) PL_TRY(file.TryLock());
  if (!is_own) PL_TRY(file.Write(CsvLine(columns)));
  own_.insert(path);
  return &files_.emplace(std::string(name), std::move(file)).first->second;
}

void ResultFiles::Append(std::string_view name, std::span<const std::string_view> columns,
                         const std::string& line) {
  Result<File*> file = FileNamed(name, columns);
  if (!file) {
    ++lost_lines_;
    return Complain(file.error());
  }
  const Status written = (*file)->Write(line);
  if (written) return;
  ++lost_lines_;
  Complain(written.error());
}

void ResultFiles::Replace(std::string_view name, std::string_view text) {
  const auto opened = OpenRankPlace({dump_path_, {RankPart(rank_)}});
  if (!opened) return Complain(opened.error());
  const Status written = WriteFileAtomically(*opened, name, text, /*durable=*/false);
  if (!written) Complain(written.error());
}

void ResultFiles::Complain(const Error& error) {
  if (std::exchange(has_complained_, true)) return;
  LogLoss(fmt::format("{}. Results of the perturbation check are lost while this lasts",
                      error.message()));
}

}  // namespace plumbline::perturb
