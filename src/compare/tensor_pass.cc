#include "compare/tensor_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "compare/compare_runs.h"
#include "formats/pytorch/tensor_file.h"
#include "load/run_reader.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/tensor_metrics.h"

namespace plumbline::compare {

namespace {

// Reads and measures the tensor files of the rows; a file that cannot be read marks its row.
class TensorPass {
 public:
  TensorPass(const Run& target, const Run& golden, const CompareOptions& options,
             Comparison& comparison)
      : target_(target), golden_(golden), options_(options), comparison_(comparison) {}

  void Run() {
    const std::vector<Group> groups = GroupRows();
    RunWithThreads(options_.threads, [&] {
      ParallelFor(groups.size(), [&](size_t k) {
        const Group& group = groups[k];
        ComparedRow& first = comparison_.rows[group.front()];
        Measure(first, group);
        for (size_t i = 1; i < group.size(); ++i) {
          comparison_.rows[group[i]].tensor = first.tensor;
          comparison_.rows[group[i]].notes = first.notes;
        }
        Report(groups.size());
      });
    });
    comparison_.counts.unreadable_files = unreadable_.load();
    Correct();
  }

 private:
  using Group = std::vector<size_t>;  // rows whose files are the same on both sides
  // Rows that get the statistics of two items.
  struct Correction {
    Group rows;
    Item target, golden;
  };

  // Recorders store equal contents once and link the names; such pairs are measured once.
  std::vector<Group> GroupRows() const {
    std::vector<Group> groups;
    std::map<std::pair<FileIdentity, FileIdentity>, size_t> known;
    for (size_t i = 0; i < comparison_.rows.size(); ++i) {
      const ComparedRow& row = comparison_.rows[i];
      if (!row.target || !row.golden) continue;
      if (row.target->data_name.empty() || row.golden->data_name.empty()) continue;
      const Result<FileIdentity> target = IdentityOf(target_.TensorPath(row.target->data_name));
      const Result<FileIdentity> golden = IdentityOf(golden_.TensorPath(row.golden->data_name));
      if (!target || !golden) {  // Measure() says why
        groups.push_back({i});
        continue;
      }
      const auto [at, is_new] = known.try_emplace({*target, *golden}, groups.size());
      if (is_new) groups.emplace_back();
      groups[at->second].push_back(i);
    }
    return groups;
  }

  void Measure(ComparedRow& row, const Group& group) {
    const std::optional<TensorFile> target = Open(target_, row.target->data_name, row);
    const std::optional<TensorFile> golden = Open(golden_, row.golden->data_name, row);
    if (!target || !golden) {
      row.tensor = measure::AbsentMetrics(Absent::kUnreadable);
      return;
    }
    Result<measure::MeasuredPair> pair = measure::MeasurePair(target->view(), golden->view());
    if (pair) {
      row.tensor = pair->metrics;
      if (pair->has_nonfinite) Compare(target->view(), golden->view(), group);
      return;
    }
    row.tensor = measure::AbsentMetrics(Absent::kUnreadable);
    row.AddNote({"unreadable", pair.error().message()});
    ++unreadable_;
  }

  // Remembers rows whose recorded statistics say that all elements are finite.
  void Compare(const TensorView& target, const TensorView& golden, const Group& group) {
    const auto is_denied = [&](size_t i) {
      const ComparedRow& row = comparison_.rows[i];
      return !measure::HasNonFinite(*row.target) || !measure::HasNonFinite(*row.golden);
    };
    Group denied;
    std::ranges::copy_if(group, std::back_inserter(denied), is_denied);
    if (denied.empty()) return;
    Correction correction{std::move(denied), Item(), Item()};
    measure::TakeStatistics(target, correction.target);
    measure::TakeStatistics(golden, correction.golden);
    const std::lock_guard lock(mutex_);
    corrections_.push_back(std::move(correction));
  }

  // On one thread: several rows may have one item.
  void Correct() {
    std::optional<size_t> first;
    size_t count = 0;
    for (const Correction& each : corrections_) {
      count += each.rows.size();
      first = std::min(first.value_or(each.rows.front()), each.rows.front());
      for (const size_t i : each.rows) {
        ComparedRow& row = comparison_.rows[i];
        for (auto [item, from] :
             {std::pair(&*row.target, &each.target), std::pair(&*row.golden, &each.golden)}) {
          item->statistics = from->statistics;
          item->finite_extremes = from->finite_extremes;
        }
      }
    }
    if (!first) return;
    comparison_.warnings.push_back(
        fmt::format("{}: the tensor files hold NaN or infinities, which dump.json denies{}; what "
                    "the files hold "
                    "is compared",
                    comparison_.rows[*first].item().name.view(),
                    count == 1 ? "" : fmt::format(", the first of {} such values", count)));
  }

  std::optional<TensorFile> Open(const plumbline::Run& run, const std::string& name,
                                 ComparedRow& row) {
    Result<TensorFile> file = load::OpenTensor(run, name);
    if (file) return std::move(*file);
    row.AddNote({"unreadable", file.error().message()});
    ++unreadable_;
    return std::nullopt;
  }

  void Report(size_t total) {
    const size_t done = done_.fetch_add(1) + 1;
    if (!options_.on_progress) return;
    const std::lock_guard lock(mutex_);
    options_.on_progress(static_cast<double>(done) / static_cast<double>(total));
  }

  const plumbline::Run& target_;
  const plumbline::Run& golden_;
  const CompareOptions& options_;
  Comparison& comparison_;
  std::atomic<uint64_t> unreadable_{0};
  std::atomic<size_t> done_{0};
  std::mutex mutex_;
  std::vector<Correction> corrections_;
};

}  // namespace

void MeasureFiles(const Run& target, const Run& golden, const CompareOptions& options,
                  Comparison& comparison) {
  TensorPass(target, golden, options, comparison).Run();
}

namespace {

// The target may be this many times as far from golden as the accepted run is. Two runs are two
// samples of the same noise; of large tensors their sizes agree closely.
constexpr double kMargin = 3;
// An accepted run that is further off than this has gone its own way.
constexpr double kLargestMeasured = 0.25;

}  // namespace

Result<std::vector<double>> MeasureNoise(const std::string& golden_path,
                                         const CompareOptions& options, Comparison& comparison) {
  CompareOptions third = options;
  third.noise_path.clear();
  third.show_stack = false;
  third.on_progress = nullptr;
  // Errors are all that is asked for: no table, no cause, no stacks.
  PL_TRY_ASSIGN(RunPair pair, RunPair::Load(options.noise_path, golden_path, third));
  PL_TRY(pair.Judge());
  const Comparison& measured = pair.comparison();
  std::unordered_map<std::string_view, double> errors;
  uint64_t excluded = 0;
  for (const ComparedRow& row : measured.rows) {
    if (!row.target || !row.golden || !std::isfinite(row.error)) continue;
    if (row.error > kLargestMeasured) {
      ++excluded;
      continue;
    }
    errors.insert_or_assign(row.golden->name, row.error);
  }
  std::vector<double> noise(comparison.rows.size(), 0);
  uint64_t covered = 0;
  for (size_t i = 0; i < noise.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const auto found = row.golden ? errors.find(row.golden->name) : errors.end();
    if (found == errors.end()) continue;
    ++covered;
    noise[i] = found->second * kMargin / measure::kNoiseFactor;
  }
  if (covered < noise.size()) {
    comparison.warnings.push_back(
        fmt::format("{}: the noise of {} of {} rows is measured; others are judged by the model",
                    measured.target_path, covered, noise.size()));
  }
  if (excluded > 0) {
    comparison.warnings.push_back(
        fmt::format("{}: {} rows differ from golden by more than {:.0f} %, which measures no noise",
                    measured.target_path, excluded, 100 * kLargestMeasured));
  }
  return noise;
}

}  // namespace plumbline::compare
