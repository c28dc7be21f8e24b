#include "pipeline/culprit/measured_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "measure/standards.h"
#include "pipeline/compare_runs.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
