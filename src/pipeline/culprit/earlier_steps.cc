#include "pipeline/culprit/earlier_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/judge_rows.h"
#include "pipeline/culprit/recorded_elements.h"
#include "pipeline/culprit/unseen_update.h"
#include "record/call_name.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kMostRows = 1 << 18;  // of all of them: a few hundred megabytes
// Calls are counted from zero in every step: those of earlier steps get numbers of their own.
constexpr uint64_t kNumbersOfAStep = 1'000'000'000;

std::string Renumbered(const std::string& name, uint64_t first) {
  std::optional<CallName> parts = ParseCallName(name);
  if (!parts) return name;
  parts->number = parts->number.value_or(0) + first;
  return BuildCallName(*parts);
}

// The item is called after its call.
void Rename(const std::string& before, const std::string& after, Slot<Item>& item) {
  if (!item) return;
  const std::string_view name = item->name;
  if (name.starts_with(before)) item->name = after + std::string(name.substr(before.size()));
}

// Its file is found from the dump.json of its own step.
void PlaceFile(const std::string& dump_json, Slot<Item>& item) {
  if (!item || item->data_name.empty() || item->data_name.starts_with(dump_json)) return;
  item->data_name = EarlierFile(dump_json, item->data_name);
}

void Renumber(uint64_t first, Comparison& step) {
  for (ComparedCall& call : step.calls) {
    const std::string target = Renumbered(call.target_name, first);
    const std::string golden = Renumbered(call.golden_name, first);
    for (uint32_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
      Rename(call.target_name, target, step.rows[i].target);
      Rename(call.golden_name, golden, step.rows[i].golden);
      PlaceFile(step.target_path, step.rows[i].target);
      PlaceFile(step.golden_path, step.rows[i].golden);
    }
    call.target_name = target;
    call.golden_name = golden;
  }
}

// What judges later steps needs no columns of the table.
void KeepForJudging(Comparison& step) {
  for (ComparedRow& row : step.rows) {
    row.notes = {};
    row.result = {};
  }
  step.stacks = {};
  step.warnings = {};
  step.data_mapping = {};
}

// Relative errors that are known to be noise, as a third run would measure them.
double MeasuredIn(const ComparedRow& row) {
  if (!measure::IsGood(row.verdict) || !std::isfinite(row.error)) return 0;
  constexpr double kRounding = 1 + 1e-9;
  return std::max(row.expected, row.error / measure::kNoiseFactor * kRounding);
}

size_t PairsAmong(std::span<const ComparedCall> calls) {
  return static_cast<size_t>(std::ranges::count_if(calls, &ComparedCall::paired));
}

// One comparison of several steps.
class Joint {
 public:
  void Append(const Comparison& step, std::vector<ComparedCall> calls) {
    const auto first_call = static_cast<uint32_t>(whole_.calls.size());
    const auto first_row = static_cast<uint32_t>(whole_.rows.size());
    for (ComparedCall& call : calls) {
      call.first_row += first_row;
      whole_.calls.push_back(std::move(call));
    }
    whole_.rows.insert(whole_.rows.end(), step.rows.begin(), step.rows.end());
    for (size_t i = first_row; i < whole_.rows.size(); ++i) whole_.rows[i].call += first_call;
  }

  void AppendEarlier(const Comparison& step) {
    const size_t first_row = whole_.rows.size();
    Append(step, step.calls);
    whole_.earlier.push_back({step.target_path, step.golden_path, step.target_tensors,
                              step.golden_tensors, static_cast<uint32_t>(whole_.calls.size())});
    for (size_t i = first_row; i < whole_.rows.size(); ++i) {
      noise_.push_back(MeasuredIn(whole_.rows[i]));
    }
  }

  std::optional<CulpritEvent> Judge(const Run& target, const measure::PairContext& context,
                                    std::span<const double> measured_noise) {
    noise_.insert(noise_.end(), measured_noise.begin(), measured_noise.end());
    noise_.resize(whole_.rows.size());
    ForgetVerdicts(whole_.rows);
    return FindCulprit(target, context, whole_, noise_);
  }

  Comparison& whole() { return whole_; }

 private:
  Comparison whole_;
  std::vector<double> noise_;
};

}  // namespace

bool IsOneCallOfTwoSteps(std::string_view name, std::string_view other) {
  std::optional<CallName> a = ParseCallName(name), b = ParseCallName(other);
  if (!a || !b || !a->number || !b->number || a->number == b->number) return false;
  a->number = *a->number % kNumbersOfAStep;
  b->number = *b->number % kNumbersOfAStep;
  return a == b;
}

std::string NameInItsStep(const std::string& name) {
  std::optional<CallName> parts = ParseCallName(name);
  if (!parts || !parts->number) return name;
  parts->number = *parts->number % kNumbersOfAStep;
  return BuildCallName(*parts);
}

void EarlierSteps::Add(int64_t step, Comparison comparison) {
  if (last_ && *last_ + 1 != step) Clear();
  last_ = step;
  if (comparison.first_wrong_call || comparison.of_saves || comparison.of_graphs()) {
    steps_.clear();
    return;
  }
  KeepForJudging(comparison);
  steps_.push_back({step, std::move(comparison)});
  size_t rows = 0;
  for (const Step& each : steps_) rows += each.comparison.rows.size();
  while (steps_.size() > kRememberedSteps || (rows > kMostRows && steps_.size() > 1)) {
    rows -= steps_.front().comparison.rows.size();
    steps_.pop_front();
  }
}

void EarlierSteps::Clear() {
  steps_.clear();
  last_.reset();
}

bool EarlierSteps::JudgeBehind(const Run& target, const measure::PairContext& context,
                               Unjudged before, Comparison& comparison,
                               std::span<const double> measured_noise) {
  Joint joint;
  for (Step& step : steps_) {
    if (step.comparison.mode != comparison.mode) return false;
    if (!std::exchange(step.is_renumbered, true)) {
      const uint64_t place = 1 + static_cast<uint64_t>(step.number) % kRememberedSteps;
      Renumber(place * kNumbersOfAStep, step.comparison);
    }
    joint.AppendEarlier(step.comparison);
  }
  Comparison& whole = joint.whole();
  const size_t earlier_calls = whole.calls.size(), earlier_rows = whole.rows.size();
  whole.mode = comparison.mode;
  whole.target_path = comparison.target_path;
  whole.golden_path = comparison.golden_path;
  whole.target_tensors = comparison.target_tensors;
  whole.golden_tensors = comparison.golden_tensors;
  const size_t pairs_before = PairsAmong(before.calls);
  joint.Append(comparison, std::move(before.calls));
  std::optional<CulpritEvent> culprit = joint.Judge(target, context, measured_noise);
  if (culprit && culprit->call < earlier_calls) return false;
  whole.calls.erase(whole.calls.begin(), whole.calls.begin() + static_cast<long>(earlier_calls));
  whole.rows.erase(whole.rows.begin(), whole.rows.begin() + static_cast<long>(earlier_rows));
  for (ComparedCall& call : whole.calls) call.first_row -= static_cast<uint32_t>(earlier_rows);
  for (ComparedRow& row : whole.rows) row.call -= static_cast<uint32_t>(earlier_calls);
  comparison.calls = std::move(whole.calls);
  comparison.rows = std::move(whole.rows);
  const size_t lost = pairs_before - PairsAmong(comparison.calls);
  comparison.counts = before.counts;
  comparison.counts.calls -= lost;
  comparison.counts.unmatched_target += lost;
  comparison.counts.unmatched_golden += lost;
  ReportUnproven(comparison);
  comparison.first_wrong_call.reset();
  if (!culprit) return true;
  culprit->call -= static_cast<uint32_t>(earlier_calls);
  culprit->row -= static_cast<uint32_t>(earlier_rows);
  comparison.first_wrong_call = DescribeCulprit(target, comparison, *culprit);
  return true;
}

}  // namespace plumbline::pipeline
