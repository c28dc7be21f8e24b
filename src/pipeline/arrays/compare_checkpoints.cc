#include "pipeline/arrays/compare_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/parallel.h"
#include "kernels/scaled_squares.h"
#include "load/checkpoint.h"
#include "measure/array_verdict.h"
#include "measure/tensor_metrics.h"
#include "pipeline/arrays/checkpoint_names.h"
#include "report/fail_conditions.h"

namespace plumbline {
namespace {

using load::Checkpoint;
using load::CheckpointTensor;
using load::WholeTensor;

struct Pair {
  const CheckpointTensor* target = nullptr;
  const CheckpointTensor* golden = nullptr;
};

// Both sides are in order of name.
std::vector<Pair> PairByName(const std::vector<CheckpointTensor>& target,
                             const std::vector<CheckpointTensor>& golden) {
  std::vector<Pair> pairs;
  size_t t = 0, g = 0;
  while (t < target.size() || g < golden.size()) {
    const int order = t == target.size()   ? 1
                      : g == golden.size() ? -1
                                           : target[t].name.compare(golden[g].name);
    Pair& pair = pairs.emplace_back();
    if (order <= 0) pair.target = &target[t++];
    if (order >= 0) pair.golden = &golden[g++];
  }
  return pairs;
}

// One pair of tensors -> one row.
class PairMeasure {
 public:
  explicit PairMeasure(ComparedParameter& row) : row_(row) {}

  void Run(const Pair& pair) {
    Describe(pair);
    if (row_.presence != Presence::kBoth) return;
    if (!Readable(*pair.target, "target") || !Readable(*pair.golden, "golden")) return;
    if (pair.target->sizes != pair.golden->sizes) {
      row_.reason = "shape-differs";
      row_.metrics = measure::AbsentMetrics(Absent::kShapeMismatch);
      row_.l2 = Absent::kShapeMismatch;
      return;
    }
    const Result<WholeTensor> target = WholeTensor::Of(*pair.target);
    if (!target) return Unreadable("target", target.error().message());
    const Result<WholeTensor> golden = WholeTensor::Of(*pair.golden);
    if (!golden) return Unreadable("golden", golden.error().message());
    Measure(target->view(), golden->view());
  }

 private:
  void Describe(const Pair& pair) {
    row_.name = pair.target != nullptr ? pair.target->name : pair.golden->name;
    if (pair.target != nullptr) {
      row_.target_dtype = pair.target->dtype;
      row_.target_sizes = pair.target->sizes;
    }
    if (pair.golden != nullptr) {
      row_.golden_dtype = pair.golden->dtype;
      row_.golden_sizes = pair.golden->sizes;
    }
    row_.error = std::nan("");
    if (pair.target != nullptr && pair.golden != nullptr) return;
    const bool in_target = pair.target != nullptr;
    row_.presence = in_target ? Presence::kTargetOnly : Presence::kGoldenOnly;
    row_.reason = in_target ? "only-target" : "only-golden";
    row_.metrics = measure::AbsentMetrics(Absent::kNoCounterpart);
    row_.l2 = Absent::kNoCounterpart;
  }

  void Unreadable(std::string_view side, const std::string& why) {
    row_.reason = "unreadable";
    row_.detail = fmt::format("{}: {}", side, why);
    row_.metrics = measure::AbsentMetrics(Absent::kUnreadable);
    row_.l2 = Absent::kUnreadable;
  }

  bool Readable(const CheckpointTensor& tensor, std::string_view side) {
    if (!tensor.problem.empty()) Unreadable(side, tensor.problem);
    return tensor.problem.empty();
  }

  void Judge(const measure::ArrayVerdict& verdict) {
    row_.verdict = verdict.verdict;
    row_.reason = verdict.reason;
    row_.error = verdict.error;
    row_.expected = verdict.expected;
  }

  void Measure(const TensorView& target, const TensorView& golden) {
    if (target.element_count() == 0) {
      row_.metrics = measure::AbsentMetrics(Absent::kEmpty);
      row_.l2 = 0.0;
      row_.reason = "empty";
      return;
    }
    if (measure::HaveEqualBytes(target, golden)) {
      row_.metrics = measure::MetricsOfEqual(target);
      row_.l2 = 0.0;
      Judge(measure::JudgeEqualArrays(target));
      row_.has_nonfinite = row_.reason == "nonfinite-both";
      return;
    }
    const Result<kernels::Pairwise> sums = measure::SumPairs(target, golden);
    if (!sums) return Unreadable("both", sums.error().message());
    row_.metrics = measure::MetricsFromSums(*sums, target.sizes.size());
    row_.first_mismatch = sums->first_mismatch;
    row_.l2 = kernels::DifferenceNorm(*sums);
    row_.has_nonfinite = sums->nonfinite_count > 0;
    if (sums->nonfinite_mismatch > 0) row_.l2 = Absent::kNonFinite;
    Judge(measure::JudgeElements(*sums, target, golden));
  }

  ComparedParameter& row_;
};

void CountRows(CheckpointComparison& comparison) {
  for (const ComparedParameter& row : comparison.parameters) {
    ++comparison.counts[static_cast<size_t>(row.verdict)];
    comparison.target_only += row.presence == Presence::kTargetOnly ? 1 : 0;
    comparison.golden_only += row.presence == Presence::kGoldenOnly ? 1 : 0;
    comparison.trivial += row.agrees_trivially() ? 1 : 0;
  }
}

std::string StemOf(const std::string& path) {
  const std::string_view name = BaseName(path);
  return std::string(name.substr(0, name.rfind('.')));
}

std::vector<std::string> NamesOf(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

void CopyWarnings(const Checkpoint& checkpoint, const std::string& path,
                  std::vector<std::string>& out) {
  for (const std::string& warning : checkpoint.warnings()) {
    out.push_back(fmt::format("{}: {}", path, warning));
  }
}

uint64_t GoodOf(const CheckpointComparison& comparison) {
  return comparison.counts[static_cast<size_t>(Verdict::kSame)] +
         comparison.counts[static_cast<size_t>(Verdict::kWithinNoise)];
}

}  // namespace

bool CheckpointComparison::is_good() const {
  return GoodOf(*this) > 0 && GoodOf(*this) + trivial == parameters.size() &&
         values.differing.empty();
}

Result<CheckpointComparison> CompareCheckpoints(const std::string& target_path,
                                                const std::string& golden_path,
                                                const CheckpointOptions& options) {
  std::optional<Result<Checkpoint>> opened_target, opened_golden;
  RunWithThreads(options.threads, [&] {
    RunBoth([&] { opened_target = Checkpoint::Open(target_path); },
            [&] { opened_golden = Checkpoint::Open(golden_path); });
  });
  PL_TRY_ASSIGN(Checkpoint target, std::move(*opened_target));
  PL_TRY_ASSIGN(Checkpoint golden, std::move(*opened_golden));
  CheckpointComparison comparison;
  comparison.target_path = target_path;
  comparison.golden_path = golden_path;
  comparison.of_arrays = target.is_array() && golden.is_array();
  CopyWarnings(target, target_path, comparison.warnings);
  CopyWarnings(golden, golden_path, comparison.warnings);
  comparison.values = CompareValues(target, golden);
  // An array has the name of its file; two are a pair whatever these are.
  const std::string name = comparison.of_arrays ? StemOf(target_path) : "";
  if (target.is_array()) target.Rename({name.empty() ? StemOf(target_path) : name});
  if (golden.is_array()) golden.Rename({name.empty() ? StemOf(golden_path) : name});
  AlignedNames names = AlignNames(NamesOf(target), NamesOf(golden));
  target.Rename(names.target);
  golden.Rename(names.golden);
  std::ranges::move(names.notes, std::back_inserter(comparison.warnings));
  const std::vector<Pair> pairs = PairByName(target.tensors(), golden.tensors());
  comparison.parameters.resize(pairs.size());
  std::atomic<size_t> done{0};
  std::mutex progress;
  RunWithThreads(options.threads, [&] {
    ParallelFor(pairs.size(), [&](size_t i) {
      PairMeasure(comparison.parameters[i]).Run(pairs[i]);
      const size_t ready = done.fetch_add(1) + 1;
      if (!options.on_progress) return;
      const std::lock_guard lock(progress);
      options.on_progress(static_cast<double>(ready) / static_cast<double>(pairs.size()));
    });
  });
  CountRows(comparison);
  return comparison;
}

Result<bool> FailsOn(const CheckpointComparison& comparison,
                     const std::vector<std::string>& conditions) {
  const auto count = [&](Verdict verdict) {
    return comparison.counts[static_cast<size_t>(verdict)];
  };
  report::MetConditions met;
  met.broken = count(Verdict::kBroken) > 0;
  met.suspicious = met.broken || count(Verdict::kSuspicious) > 0;
  met.wrong = met.suspicious;
  met.unmatched = count(Verdict::kNotComparable) > comparison.trivial || GoodOf(comparison) == 0;
  met.unjudged = met.unmatched;
  met.differs = !comparison.is_good();
  return report::MeetsAny(met, conditions);
}

}  // namespace plumbline
