#include "pipeline/step_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/file.h"
#include "pipeline/compare_runs.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

// Steps of one side, the newest last, and the one that is compared.
struct SideSteps {
  std::span<const load::StepDirectory> earlier;
  int64_t own = 0;
  std::string_view rank_name;
};

std::optional<SideSteps> StepsOfSide(const RunPlace& place, StepDirectories& directories) {
  const std::vector<load::StepDirectory>& steps = directories.StepsOf(place.dump_path);
  const auto here = std::find_if(steps.begin(), steps.end(), [&](const auto& each) {
    return BaseName(each.path) == BaseName(place.step_path);
  });
  if (here == steps.end()) return std::nullopt;
  return SideSteps{{steps.begin(), here}, here->step, BaseName(place.rank_path)};
}

// The rank's directory in the step `back` before the side's own; empty where there is none.
std::string RankBefore(const SideSteps& side, size_t back, StepDirectories& directories) {
  if (back > side.earlier.size()) return {};
  const load::StepDirectory& step = side.earlier[side.earlier.size() - back];
  if (step.step != side.own - static_cast<int64_t>(back)) return {};
  std::string path = JoinPath(step.path, side.rank_name);
  return directories.RankAt(path).is_there ? path : std::string();
}

std::string GapText(int64_t step, const std::string& target) {
  return fmt::format(
      "only the {} has step {}: whether something was wrong there is not known, and what is named "
      "here may have begun there",
      target.empty() ? "golden" : "target", step);
}

// Whether something of a step was lost, so that its being right is not known.
bool IsCut(const Comparison& step) {
  const auto is_cut = [](const RunLoss& loss) {
    return loss.truncated || loss.unfinished || loss.recorder_drops > 0;
  };
  return is_cut(step.target_loss) || is_cut(step.golden_loss) || step.counts.unreadable_files > 0;
}

}  // namespace

const std::vector<load::StepDirectory>& StepDirectories::StepsOf(const std::string& dump_path) {
  const auto [at, is_new] = steps_.try_emplace(dump_path);
  if (!is_new) return at->second;
  auto steps = load::ListStepDirectories(dump_path);
  if (steps) at->second = std::move(*steps);
  return at->second;
}

const StepDirectories::Rank& StepDirectories::RankAt(const std::string& rank_path) {
  const auto [at, is_new] = ranks_.try_emplace(rank_path);
  Rank& rank = at->second;
  if (!is_new) return rank;
  rank.is_there = KindOf(rank_path) == PathKind::kDirectory;
  const std::string dump = JoinPath(rank_path, run_files::kDumpJson);
  const Result<uint64_t> size = FileSize(dump);
  const Result<int64_t> time = ModifiedAt(dump);
  if (size && time) rank.facts = fmt::format("{}\t{}", *size, *time);
  return rank;
}

StepsFound StepsBefore(const RunPlace& target, const RunPlace& golden,
                       StepDirectories& directories) {
  // Steps of one dump that are compared with each other are variants, not the history of one run.
  if (target.dump_path == golden.dump_path) return {};
  const auto ours = StepsOfSide(target, directories), theirs = StepsOfSide(golden, directories);
  if (!ours || !theirs) return {};
  StepsFound found;
  for (size_t back = 1;; ++back) {
    StepPair pair{ours->own - static_cast<int64_t>(back),
                  RankBefore(*ours, back, directories),
                  RankBefore(*theirs, back, directories),
                  {}};
    if (pair.target.empty() || pair.golden.empty()) {
      // Steps of other numbers need not begin alike.
      const bool is_gap = pair.target.empty() != pair.golden.empty() && ours->own == theirs->own;
      if (is_gap && back <= kRememberedSteps) found.gap = GapText(pair.step, pair.target);
      break;
    }
    pair.facts = fmt::format("{}\n{}\n", directories.RankAt(pair.target).facts,
                             directories.RankAt(pair.golden).facts);
    found.steps.push_back(std::move(pair));
  }
  std::ranges::reverse(found.steps);
  return found;
}

const StepsFound& StepChain::Find(const RunPlace& target, const RunPlace& golden) {
  std::string places = fmt::format("{}\n{}", target.rank_path, golden.rank_path);
  if (places != found_for_) {
    found_ = StepsBefore(target, golden, directories_);
    found_for_ = std::move(places);
  }
  return found_;
}

EarlierSteps* StepChain::Before(const Run& target, const Run& golden) {
  const StepsFound& found = Find(PlaceOf(target), PlaceOf(golden));
  if (found.steps.empty()) return nullptr;
  const int64_t last = found.steps.back().step;
  if (steps_.last_step() != last && !is_reading_) Read(std::vector<StepPair>(found.steps));
  return steps_.last_step() != last || steps_.empty() ? nullptr : &steps_;
}

std::vector<std::string> StepChain::WhatIsMissing(const Run& target, const Run& golden) {
  const StepsFound& found = Find(PlaceOf(target), PlaceOf(golden));
  std::vector<std::string> sentences;
  if (!found.gap.empty()) sentences.push_back(found.gap);
  if (found.steps.empty()) return sentences;
  // What came first is what the rest may follow from.
  const auto trouble = troubles_.lower_bound(found.steps.front().step);
  if (trouble != troubles_.end() && trouble->first <= found.steps.back().step) {
    sentences.push_back(trouble->second);
  }
  return sentences;
}

// Each is judged behind those before it: Judge() asks this chain for them.
void StepChain::Read(const std::vector<StepPair>& steps) {
  steps_.Clear();
  troubles_.clear();
  is_reading_ = true;
  static const SentValues kNothing;
  for (const StepPair& step : steps) {
    auto pair = RunPair::Load(step.target, step.golden, options_);
    const Status judged =
        pair ? pair->Judge(received_ ? received_(step.step) : kNothing, this) : pair.error();
    if (!judged) {
      steps_.Clear();
      troubles_[step.step] =
          fmt::format("step {} cannot be compared, so what is named here may have begun there: {}",
                      step.step, judged.error().message());
      continue;
    }
    Comparison comparison = std::move(*pair).Take();
    if (!is_shown_) NoteTrouble(step.step, comparison);
    steps_.Add(step.step, std::move(comparison));
  }
  is_reading_ = false;
}

void StepChain::NoteTrouble(int64_t step, const Comparison& comparison) {
  if (comparison.first_wrong_call) {
    troubles_[step] =
        fmt::format("step {} is wrong already, and what is named here may follow from it: {}", step,
                    comparison.first_wrong_call->name);
  } else if (IsCut(comparison)) {
    troubles_[step] = fmt::format(
        "step {} is not there completely: what is named here may have begun there", step);
  }
}

}  // namespace plumbline::pipeline
