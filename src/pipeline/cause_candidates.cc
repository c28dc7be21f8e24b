#include "pipeline/cause_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/file.h"
#include "load/rank_directories.h"
#include "measure/stats_metrics.h"
#include "record/value.h"
#include "store/run_layout.h"

namespace plumbline::pipeline {
namespace {

using measure::CauseCandidate;

constexpr size_t kMostOfAKind = 6;
constexpr double kNormSlack = 0.03;  // norms of a difference and of the addend behind it

double CountOf(const Item& item) {
  const Result<int64_t> count = ElementCount(item.shape);
  return count ? static_cast<double>(*count) : 0;
}

std::optional<double> NormOf(const Item& item) { return measure::NumberOf(item.statistics[3]); }

std::string ShortName(const Item& item, std::string_view call_name) {
  std::string_view name = item.name;
  if (name.starts_with(call_name) && name.size() > call_name.size() + 1) {
    name.remove_prefix(call_name.size() + 1);
  }
  return std::string(name);
}

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
    if (auto file = OpenTensor(run, item)) files_.Add(std::move(name), role, std::move(*file));
  }

  std::span<const ComparedRow> RowsOf(const ComparedCall& call) const {
    return std::span(context_.comparison.rows).subspan(call.first_row, call.row_count);
  }

  [[nodiscard]] bool IsInput(const ComparedRow& row) const {
    const ItemRole role = row.item().role;
    return role == ItemRole::kInput || role == ItemRole::kParameter;
  }

  void AddOperands() {
    if (IsInput(row_)) return;  // an input is not made from the other inputs
    for (const ComparedRow& row : RowsOf(call_)) {
      if (!row.golden || !row.golden->is_tensor || !IsInput(row)) continue;
      Add(context_.golden, *row.golden, ShortName(*row.golden, call_.golden_name),
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
    const double count = CountOf(*row_.golden);
    std::vector<std::pair<double, const ComparedRow*>> near;
    for (const ComparedRow& row : context_.comparison.rows) {
      if (!row.golden || row.golden->data_name.empty() || row.call == row_.call) continue;
      const double own = CountOf(*row.golden);
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

  static std::string DumpPathOf(const Run& run) {
    return std::string(DirectoryOf(DirectoryOf(RankPathOf(run))));
  }

  // The same item of the same rank at the nearest earlier steps of both sides. Steps of one dump
  // that are compared with each other are variants, not the history of one run.
  void AddSteps() {
    if (DumpPathOf(context_.target) == DumpPathOf(context_.golden)) return;
    for (const Run* run : {&context_.target, &context_.golden}) {
      const Item& item = run == &context_.target ? *row_.target : *row_.golden;
      const std::string rank_path = RankPathOf(*run);
      const std::string step_path(DirectoryOf(rank_path));
      const auto steps = load::ListStepDirectories(std::string(DirectoryOf(step_path)));
      if (!steps) continue;
      const auto here =
          std::find_if(steps->begin(), steps->end(), [&](const load::StepDirectory& each) {
            return BaseName(each.path) == BaseName(step_path);
          });
      if (here == steps->end()) continue;
      constexpr std::ptrdiff_t kMostSteps = 3;
      const auto first = here - std::min<std::ptrdiff_t>(here - steps->begin(), kMostSteps);
      for (auto step = first; step != here; ++step) {
        AddFile(JoinPath(step->path, BaseName(rank_path)), item,
                fmt::format("{} of step {} of the {}", item.name, step->step,
                            run == &context_.target ? "target" : "golden run"),
                CauseCandidate::Role::kEarlierStep);
      }
    }
  }

  // The same item of the other ranks of the target, where values are summed over ranks.
  void AddRanks() {
    const bool is_gradient = KindOfCall(call_.name()) == CallKind::kParametersGrad;
    if (!is_gradient && !call_.name().starts_with("Distributed.")) return;
    constexpr double kMostElements = 1 << 25;  // of all ranks together
    const std::string rank_path = RankPathOf(context_.target);
    const auto ranks = load::ListRankDirectories(std::string(DirectoryOf(rank_path)));
    if (!ranks || ranks->size() < 2) return;
    if (static_cast<double>(ranks->size()) * CountOf(*row_.target) > kMostElements) return;
    for (const load::RankDirectory& rank : *ranks) {
      if (rank.name == BaseName(rank_path)) continue;
      AddFile(rank.path, *row_.target, fmt::format("{} of {}", row_.target->name, rank.name),
              CauseCandidate::Role::kRankShare);
    }
  }

  void AddFile(const std::string& directory, const Item& item, std::string name,
               CauseCandidate::Role role) {
    if (item.data_name.empty() || item.data_name.find('/') != std::string::npos) return;
    const std::string path =
        JoinPath(JoinPath(directory, run_layout::kTensorDirectory), item.data_name);
    auto file = torch_pt::PtFile::Open(path);
    if (file) files_.Add(std::move(name), role, std::move(*file));
  }

  // Absolute, so that the directories above it have names.
  static std::string RankPathOf(const Run& run) {
    const Result<std::string> path = AbsolutePath(run.dump_json_path());
    return std::string(DirectoryOf(path ? *path : run.dump_json_path()));
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
  if (!a.is_tensor || !b.is_tensor || CountOf(a) != CountOf(b)) return false;
  if (a.has_recorded_digest && b.has_recorded_digest) return a.digest == b.digest;
  return a.statistics == b.statistics && NormOf(a).value_or(0) > 0;
}

std::optional<torch_pt::PtFile> OpenTensor(const Run& run, const Item& item) {
  // A name that leaves the directory is not followed.
  if (item.data_name.empty() || item.data_name.find('/') != std::string::npos) return std::nullopt;
  Result<torch_pt::PtFile> file = torch_pt::PtFile::Open(run.TensorPath(item.data_name));
  if (!file) return std::nullopt;
  return std::move(*file);
}

CandidateFiles CollectCandidates(const CauseContext& context, uint32_t row_index) {
  return Collector(context, row_index).Collect();
}

std::string UnmatchedProducer(const Comparison& comparison, const ComparedRow& row,
                              bool of_target) {
  const Item& wanted = of_target ? *row.target : *row.golden;
  for (const ComparedRow& each : comparison.rows) {
    const Slot<Item>& made = of_target ? each.target : each.golden;
    if (!made || made->role != ItemRole::kOutput) continue;
    const ComparedCall& call = comparison.calls[each.call];
    if (!call.paired() && HasSameContents(*made, wanted)) return call.name();
  }
  return {};
}

}  // namespace plumbline::pipeline
