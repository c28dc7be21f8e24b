#include "verdict/cause_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "load/rank_directories.h"
#include "load/run_reader.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "record/recorded_number.h"
#include "record/run_files.h"
#include "record/value.h"
#include "verdict/choose_culprit.h"
#include "verdict/other_batch.h"
#include "verdict/walk_state.h"

namespace plumbline::verdict {

RunPlace PlaceOf(const Run& run) {
  return PlaceOfRank(std::string(DirectoryOf(run.dump_json_path())));
}

RunPlace PlaceOfRank(const std::string& directory) {
  RunPlace place;
  const Result<std::string> path = AbsolutePath(directory);
  place.rank_path = path ? *path : directory;
  place.step_path = DirectoryOf(place.rank_path);
  place.dump_path = DirectoryOf(place.step_path);
  return place;
}

std::optional<StepHistory> StepHistoryOf(const RunPlace& place) {
  auto steps = load::ListStepDirectories(place.dump_path);
  if (!steps) return std::nullopt;
  const auto here = std::find_if(steps->begin(), steps->end(), [&](const auto& each) {
    return BaseName(each.path) == BaseName(place.step_path);
  });
  if (here == steps->end()) return std::nullopt;
  return StepHistory{{steps->begin(), here}, *here, std::string(BaseName(place.rank_path))};
}

std::optional<int64_t> StepHistory::step_before() const {
  if (!earlier.empty()) return earlier.back().step;
  return own.step > 0 ? std::optional(own.step - 1) : std::nullopt;
}

std::string BeforeTheStep(const Run& target, const Run& golden) {
  const std::optional<StepHistory> history = StepHistoryOf(PlaceOf(target));
  // Steps of one dump that are compared with each other are variants, not the history of one run.
  if (!history || PlaceOf(target).dump_path == PlaceOf(golden).dump_path) {
    return "the step before (optimizer), or at what was loaded";
  }
  const std::optional<int64_t> before = history->step_before();
  if (!before) return "how they are initialised, or at what was loaded";
  return fmt::format(
      "the optimizer step between step {} and step {} (no calls of it are recorded here), or at "
      "what was loaded",
      *before, history->own.step);
}

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

namespace {

using measure::Difference;
using measure::HasTensors;

using Pairs = std::vector<std::pair<const ComparedRow*, const ComparedRow*>>;
using Fits = std::function<bool(const Item& target, const Item& golden)>;

// Each row with the one whose golden item is its target's; empty where one finds none.
Pairs PairCrosswise(const std::vector<const ComparedRow*>& rows, const Fits& fits) {
  Pairs pairs;
  std::vector<const ComparedRow*> left = rows;
  for (const ComparedRow* row : rows) {
    const auto found = std::ranges::find_if(left, [&](const ComparedRow* each) {
      return each != row && row->target->shape == each->golden->shape &&
             row->target->dtype == each->golden->dtype && fits(*row->target, *each->golden);
    });
    if (found == left.end()) return {};
    pairs.emplace_back(row, *found);
    left.erase(found);
  }
  return pairs;
}

// An error that is noise without a reason from outside.
double LargestNoiseOf(const WalkState& state, const ComparedRow& row) {
  return measure::kNoiseFactor *
         std::max(state.RoundoffOf(row), state.noise.AtMost(state.noise.level()));
}

bool IsWithin(const Difference& difference, double largest) {
  if (difference.kind == Difference::Kind::kEqual) return true;
  return difference.kind == Difference::Kind::kNumeric && difference.error <= largest;
}

// The same of two that may be zeros on both sides, as what a recurrence begins with.
bool Agree(const Difference& difference, double largest) {
  return IsWithin(difference, largest) || difference.reason == "zero-both";
}

}  // namespace

ExchangedOperands::ExchangedOperands(const measure::PairContext& context)
    : context_{context.mode == CompareMode::kTensor ? CompareMode::kStatistics : context.mode,
               context.reductions_differ, context.digest_bases_differ} {}

void ExchangedOperands::Enter(const WalkState& state, const ComparedCall& call) {
  errors_.clear();
  if (state.comparison.of_saves || !call.paired()) return;
  if (KindOfCall(call.target_name) == CallKind::kBackward) {
    const bool follows = forward_calls_.contains(ForwardNameOf(call.target_name));
    if (!follows || !Pair(state, call, ItemRole::kOutput)) errors_.clear();
    return;
  }
  if (Pair(state, call, ItemRole::kInput) && ResultsAgree(state, call)) {
    forward_calls_.insert(call.target_name);
  } else {
    errors_.clear();
  }
}

bool ExchangedOperands::Pair(const WalkState& state, const ComparedCall& call, ItemRole role) {
  std::vector<const ComparedRow*> differing;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, call)) {
    if (!HasTensors(row) || row.target->role != role) continue;
    if (!IsWithin(state.DifferenceOf(row), LargestNoiseOf(state, row))) differing.push_back(&row);
  }
  if (differing.size() < 2) return false;
  const double largest = LargestNoiseOf(state, *differing.front());
  const auto difference = [&](const Item& target, const Item& golden) {
    return measure::DifferenceOf(target, golden, context_, nullptr);
  };
  const Pairs pairs = PairCrosswise(differing, [&](const Item& target, const Item& golden) {
    return Agree(difference(target, golden), largest);
  });
  for (const auto& [row, partner] : pairs) {
    const double error = difference(*row->target, *partner->golden).error;
    errors_[state.IndexOf(*row)] = std::isfinite(error) ? error : 0;
  }
  return !pairs.empty();
}

bool ExchangedOperands::ResultsAgree(const WalkState& state, const ComparedCall& call) const {
  double error = 0;
  for (const auto& [row, each] : errors_) error = std::max(error, each);
  // Equal statistics may be those of another order of elements: matrices multiplied the other way
  // round give the transposed product. What has one element for each of an operand's does not.
  const bool is_seen = state.comparison.mode != CompareMode::kStatistics;
  if (!is_seen && measure::ClassOfCall(call.target_name) == measure::CallClass::kProduct) {
    return false;
  }
  bool any = false;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, call)) {
    if (!row.target || row.target->role != ItemRole::kOutput) continue;
    const double largest = std::max(LargestNoiseOf(state, row), measure::kNoiseFactor * error);
    if (!HasTensors(row) || !Agree(state.DifferenceOf(row), largest)) return false;
    const auto has_its_shape = [&](const auto& exchanged) {
      return state.comparison.rows[exchanged.first].target->shape == row.target->shape;
    };
    if (!is_seen && !std::ranges::all_of(errors_, has_its_shape)) return false;
    any = true;
  }
  return any;
}

bool ExchangedOperands::Take(const WalkState& state, ComparedRow& row) const {
  const auto found = errors_.find(state.IndexOf(row));
  if (found == errors_.end()) return false;
  row.verdict = Verdict::kWithinNoise;
  row.reason = kReason;
  row.error = found->second;
  row.expected = LargestNoiseOf(state, row) / measure::kNoiseFactor;
  return true;
}

std::optional<measure::Cause> ExchangeCause(const Comparison& comparison, const ComparedRow& row) {
  if (!HasTensors(row) || row.target->role != ItemRole::kInput) return std::nullopt;
  const ComparedCall& call = comparison.calls[row.call];
  std::vector<const ComparedRow*> differing;
  for (const ComparedRow& each : measure::RowsOf(comparison, call)) {
    if (!HasTensors(each) || each.target->role != ItemRole::kInput) continue;
    if (!HasSameContents(*each.target, *each.golden)) differing.push_back(&each);
  }
  for (const auto& [own, partner] : PairCrosswise(differing, HasSameContents)) {
    if (own != &row) continue;
    return measure::Cause{
        "operands-exchanged",
        fmt::format("the target takes as {} what golden takes as {}; the inputs are the same in "
                    "another order",
                    measure::ShortName(*row.target, call.target_name),
                    measure::ShortName(*partner->golden, call.golden_name)),
        comparison.mode == CompareMode::kStatistics ? measure::CauseConfidence::kMedium
                                                    : measure::CauseConfidence::kHigh};
  }
  return std::nullopt;
}

}  // namespace plumbline::verdict
