#include "pipeline/culprit/cause_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/file.h"
#include "load/rank_directories.h"
#include "load/recorded_tensor.h"
#include "measure/compared_row.h"
#include "pipeline/culprit/other_batch.h"
#include "pipeline/culprit/step_history.h"
#include "record/recorded_number.h"
#include "record/run_files.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

using measure::CauseCandidate;

constexpr size_t kMostOfAKind = 6;
constexpr double kNormSlack = 0.03;  // norms of a difference and of the addend behind it

std::optional<double> NormOf(const Item& item) { return NumberOf(item.statistics[3]); }

class Collector {
 public:
  Collector(const CauseContext& context, uint32_t row_index)
      : context_(context),
        index_(row_index),
        row_(context.comparison.rows[row_index]),
        call_(context.comparison.calls[row_.call]) {}

  CandidateFiles Collect() {
    AddOperands();
    AddRepeated();
    AddAddends();
    AddSteps();
    AddRanks();
    return std::move(files_);
  }

 private:
  void Add(const Run& run, const Item& item, std::string name, CauseCandidate::Role role) {
    auto file = load::OpenTensor(run, item.data_name);
    if (file) files_.Add(std::move(name), role, std::move(*file));
  }

  void AddOperands() {
    if (measure::IsInput(row_)) return;  // an input is not made from the other inputs
    for (const ComparedRow& row : measure::RowsOf(context_.comparison, call_)) {
      if (!row.golden || !row.golden->is_tensor || !measure::IsInput(row)) continue;
      Add(context_.golden, *row.golden,
          std::string(measure::ShortName(*row.golden, call_.golden_name)),
          CauseCandidate::Role::kOperand);
    }
  }

  // The target may hold an earlier value.
  void AddRepeated() {
    size_t found = 0;
    for (uint32_t i = 0; i < index_ && found < kMostOfAKind; ++i) {
      const ComparedRow& row = context_.comparison.rows[i];
      if (!row.target || row.call == row_.call) continue;
      if (!HasSameContents(*row.target, *row_.target)) continue;
      Add(context_.target, *row.target, row.target->name, CauseCandidate::Role::kEarlier);
      ++found;
    }
  }

  // Values whose norm is that of the difference. A value that repeats along an axis counts as
  // often as it repeats.
  void AddAddends() {
    const double* relative = std::get_if<double>(&row_.tensor->relative_l2);
    const std::optional<double> golden_norm = NormOf(*row_.golden);
    if (relative == nullptr || !golden_norm) return;
    const double wanted = *relative * *golden_norm;
    if (!(wanted > 0) || !std::isfinite(wanted)) return;
    const double count = measure::ElementsOf(*row_.golden);
    std::vector<std::pair<double, const ComparedRow*>> near;
    for (const ComparedRow& row : context_.comparison.rows) {
      if (!row.golden || row.golden->data_name.empty() || row.call == row_.call) continue;
      const double own = measure::ElementsOf(*row.golden);
      const std::optional<double> norm = NormOf(*row.golden);
      if (!norm || own < 1 || own > count || std::fmod(count, own) != 0) continue;
      const double distance = std::abs(*norm * std::sqrt(count / own) / wanted - 1);
      if (distance <= kNormSlack) near.emplace_back(distance, &row);
    }
    std::stable_sort(near.begin(), near.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    near.resize(std::min(near.size(), kMostOfAKind));
    for (const auto& [distance, row] : near) {
      Add(context_.golden, *row->golden, row->golden->name, CauseCandidate::Role::kEarlier);
    }
  }

  // The same item of the same rank at the nearest earlier steps of both sides. Steps of one dump
  // that are compared with each other are variants, not the history of one run.
  void AddSteps() {
    if (PlaceOf(context_.target).dump_path == PlaceOf(context_.golden).dump_path) return;
    for (const Run* run : {&context_.target, &context_.golden}) {
      const Item& item = run == &context_.target ? *row_.target : *row_.golden;
      const std::optional<StepHistory> history = StepHistoryOf(PlaceOf(*run));
      if (!history) continue;
      constexpr size_t kMostSteps = 3;
      const std::span steps = history->earlier;
      for (const load::StepDirectory& step : steps.last(std::min(steps.size(), kMostSteps))) {
        AddFile(JoinPath(step.path, history->rank_name), item,
                fmt::format("{} of step {} of the {}", item.name, step.step,
                            run == &context_.target ? "target" : "golden run"),
                CauseCandidate::Role::kEarlierStep);
      }
    }
  }

  // The other ranks of a run.
  std::vector<load::RankDirectory> OtherRanks(const Run& run) const {
    constexpr double kMostElements = 1 << 25;  // of all ranks together
    const RunPlace place = PlaceOf(run);
    auto ranks = load::ListRankDirectories(place.step_path);
    if (!ranks || ranks->size() < 2) return {};
    if (static_cast<double>(ranks->size()) * measure::ElementsOf(*row_.target) > kMostElements)
      return {};
    std::erase_if(*ranks, [&](const auto& rank) { return rank.name == BaseName(place.rank_path); });
    return std::move(*ranks);
  }

  // The value of the target that is summed over its ranks where the row is, or should have been:
  // the row's own of a collective or a gradient, else the recorded value that the row repeats.
  [[nodiscard]] const Item* OwnShare() const {
    const bool is_gradient = KindOfCall(call_.name()) == CallKind::kParametersGrad;
    const bool is_collective = call_.name().starts_with("Distributed.");
    if (is_gradient || (is_collective && !measure::IsInput(row_))) return &*row_.target;
    if (!measure::IsInput(row_)) return nullptr;
    for (uint32_t i = 0; i < index_; ++i) {
      const ComparedRow& row = context_.comparison.rows[i];
      if (!row.target || row.call == row_.call || row.target->data_name.empty()) continue;
      if (row.target->shape != row_.target->shape) continue;  // a transposed view of it
      if (HasSameContents(*row.target, *row_.target)) return &*row.target;
    }
    return nullptr;
  }

  void AddRanks() {
    if (const Item* share = OwnShare()) {
      for (const load::RankDirectory& rank : OtherRanks(context_.target)) {
        AddFile(rank.path, *share, fmt::format("{} of {}", share->name, rank.name),
                CauseCandidate::Role::kRankShare);
      }
    }
    const bool is_whole = measure::IsInput(row_) || call_.name().starts_with("Distributed.");
    if (!is_whole) return;
    for (const load::RankDirectory& rank : OtherRanks(context_.golden)) {
      AddFile(rank.path, *row_.golden,
              fmt::format("{} of golden's {}", row_.golden->name, rank.name),
              CauseCandidate::Role::kOtherRank);
    }
  }

  void AddFile(const std::string& directory, const Item& item, std::string name,
               CauseCandidate::Role role) {
    auto file =
        load::OpenTensorIn(JoinPath(directory, run_files::kTensorDirectory), item.data_name);
    if (file) files_.Add(std::move(name), role, std::move(*file));
  }

  const CauseContext& context_;
  const uint32_t index_;
  const ComparedRow& row_;
  const ComparedCall& call_;
  CandidateFiles files_;
};

}  // namespace

std::vector<CauseCandidate> CandidateFiles::views() const {
  std::vector<CauseCandidate> views;
  for (size_t i = 0; i < files_.size(); ++i) {
    views.push_back({facts_[i].first, facts_[i].second, files_[i].view()});
  }
  return views;
}

bool HasSameContents(const Item& a, const Item& b) {
  if (!a.is_tensor || !b.is_tensor || measure::ElementsOf(a) != measure::ElementsOf(b))
    return false;
  if (a.has_recorded_digest && b.has_recorded_digest) return a.digest == b.digest;
  return a.statistics == b.statistics && NormOf(a).value_or(0) > 0;
}

CandidateFiles CollectCandidates(const CauseContext& context, uint32_t row_index) {
  return Collector(context, row_index).Collect();
}

bool MayMake(const Comparison& comparison, uint32_t maker, const ComparedRow& row, bool of_target) {
  if (maker < row.call) return true;
  if (maker == row.call || of_target) return false;
  const auto rows = measure::RowsOf(comparison, comparison.calls[maker]);
  return std::none_of(rows.begin(), rows.end(), [&](const ComparedRow& each) {
    return each.golden && measure::IsInput(each) && HasSameContents(*each.golden, *row.golden);
  });
}

std::string UnmatchedProducer(const Comparison& comparison, const ComparedRow& row,
                              bool of_target) {
  const Item& wanted = *measure::SideOf(row, of_target);
  for (const ComparedCall& call : comparison.calls) {
    if (call.paired()) continue;                         // nearly all
    if (call.unmatched_reason == kOtherBatch) continue;  // neither side leaves it out
    const auto index = static_cast<uint32_t>(&call - comparison.calls.data());
    if (!MayMake(comparison, index, row, of_target)) continue;
    for (const ComparedRow& each : measure::RowsOf(comparison, call)) {
      const Slot<Item>& made = measure::SideOf(each, of_target);
      if (!made || made->role != ItemRole::kOutput) continue;
      if (HasSameContents(*made, wanted)) return call.name();
    }
  }
  return {};
}

}  // namespace plumbline::pipeline
