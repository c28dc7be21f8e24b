#include "compare/carried_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "compare/compare_runs.h"
#include "load/rank_scan.h"
#include "measure/compared_row.h"
#include "record/run_files.h"
#include "verdict/contents.h"

namespace plumbline::compare {

namespace {

// What does not tell where it comes from (zeros, one number) arrives from anywhere.
std::optional<ContentId> ContentsOf(const ComparedRow& row) {
  if (!row.target || !row.golden || !verdict::IsTelling(*row.target)) return std::nullopt;
  const auto target = verdict::KeyOf(*row.target), golden = verdict::KeyOf(*row.golden);
  if (!target || !golden) return std::nullopt;
  std::string bytes;
  for (const auto& key : {*target, *golden}) {
    const auto digest = static_cast<std::string_view>(key.digest);
    const auto add = [&](const auto& number) {
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    add(static_cast<uint64_t>(digest.size()));
    bytes += digest;
    for (const uint64_t statistic : key.statistics) add(statistic);
    add(key.element_count);
  }
  return Xxh3Of(std::as_bytes(std::span(bytes)));
}

// Calls `visit(row, contents)` for the tensors of paired communication calls.
template <typename Visit>
void VisitCommunication(const Comparison& comparison, const Visit& visit) {
  for (const ComparedCall& call : comparison.calls) {
    if (!call.paired() || !CommunicationApi(call.target_name)) continue;
    for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
      if (const auto contents = ContentsOf(row)) visit(row, *contents);
    }
  }
}

}  // namespace

std::vector<SentValue> SentWithinNoise(const Comparison& comparison) {
  std::vector<SentValue> sent;
  // What came from another rank and goes on is known from where it was made only.
  std::unordered_set<ContentId, ContentIdHash> known;
  VisitCommunication(comparison, [&](const ComparedRow& row, const ContentId& contents) {
    if (!known.insert(contents).second || !measure::IsInput(row)) return;
    if (row.verdict != Verdict::kWithinNoise || !std::isfinite(row.expected)) return;
    sent.push_back({contents, row.expected});
  });
  return sent;
}

std::vector<ContentId> WrongArrivals(const Comparison& comparison) {
  std::vector<ContentId> wrong;
  std::unordered_set<ContentId, ContentIdHash> known;
  VisitCommunication(comparison, [&](const ComparedRow& row, const ContentId& contents) {
    const bool is_wrong = !measure::IsInput(row) && measure::IsBad(row.verdict);
    if (is_wrong && known.insert(contents).second) wrong.push_back(contents);
  });
  return wrong;
}

void AddExplainedBySenders(const Comparison& comparison, const SentValues& sent,
                           std::vector<double>& explained) {
  explained.resize(comparison.rows.size(), 0);
  VisitCommunication(comparison, [&](const ComparedRow& row, const ContentId& contents) {
    const auto found = sent.find(contents);
    if (found == sent.end() || measure::IsInput(row)) return;
    double& own = explained[static_cast<size_t>(&row - comparison.rows.data())];
    own = std::max(own, found->second);
  });
}

namespace {

// Steps of one side, the newest last, and the one that is compared.
struct SideSteps {
  std::span<const load::StepDirectory> earlier;
  int64_t own = 0;
  std::string_view rank_name;
};

std::optional<SideSteps> StepsOfSide(const verdict::RunPlace& place, StepDirectories& directories) {
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

StepsFound StepsBefore(const verdict::RunPlace& target, const verdict::RunPlace& golden,
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
      if (is_gap && back <= verdict::kRememberedSteps) found.gap = GapText(pair.step, pair.target);
      break;
    }
    pair.facts = fmt::format("{}\n{}\n", directories.RankAt(pair.target).facts,
                             directories.RankAt(pair.golden).facts);
    found.steps.push_back(std::move(pair));
  }
  std::ranges::reverse(found.steps);
  return found;
}

const StepsFound& StepChain::Find(const verdict::RunPlace& target,
                                  const verdict::RunPlace& golden) {
  std::string places = fmt::format("{}\n{}", target.rank_path, golden.rank_path);
  if (places != found_for_) {
    found_ = StepsBefore(target, golden, directories_);
    found_for_ = std::move(places);
  }
  return found_;
}

verdict::EarlierSteps* StepChain::Before(const Run& target, const Run& golden) {
  const StepsFound& found = Find(verdict::PlaceOf(target), verdict::PlaceOf(golden));
  if (found.steps.empty()) return nullptr;
  const int64_t last = found.steps.back().step;
  if (steps_.last_step() != last && !is_reading_) Read(std::vector<StepPair>(found.steps));
  return steps_.last_step() != last || steps_.empty() ? nullptr : &steps_;
}

std::vector<std::string> StepChain::WhatIsMissing(const Run& target, const Run& golden) {
  const StepsFound& found = Find(verdict::PlaceOf(target), verdict::PlaceOf(golden));
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

}  // namespace plumbline::compare
