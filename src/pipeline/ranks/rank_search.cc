// SearchRanks(): which wrong call came first over the ranks of a step.

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "pipeline/ranks/comm_graph.h"
#include "pipeline/ranks/rank_summary.h"

namespace plumbline::pipeline {
namespace {

// The compared ranks of one step, as the pairing of communication calls wants them.
class StepSearch {
 public:
  StepSearch(RanksReport& report, size_t begin, size_t end) : report_(report) {
    for (size_t i = begin; i < end; ++i) {
      const ComparedRank& rank = report.ranks[i];
      if (!rank.outcome) continue;
      RankScan scan;
      scan.directory = *rank.pair.target;
      scan.calls = rank.outcome->communication;
      scan.groups = rank.outcome->groups;
      scans_.push_back(std::move(scan));
      ranks_.push_back(i);
    }
    graph_ = BuildCommGraph(scans_);
    MarkReceivers();
  }

  // Whether any rank of the step has a wrong call.
  bool Run() {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < ranks_.size(); ++i) AddRank(i, candidates);
    std::sort(candidates.begin(), candidates.end());
    const bool any_unexplained = std::any_of(candidates.begin(), candidates.end(),
                                             [](const auto& c) { return !c.explained; });
    for (const Candidate& candidate : candidates) {
      // Without any origin the calls explain each other in a circle: the earliest one is named.
      if (any_unexplained && candidate.explained) break;
      report_.origins.push_back({ranks_[candidate.rank], candidate.call, candidate.layer});
    }
    return !candidates.empty();
  }

  void NoteCommunication() {
    if (graph_.unpaired == 0 || scans_.size() < 2) return;
    const RankScan& scan = scans_[graph_.first_unpaired.rank];
    report_.notes.push_back(fmt::format(
        "{}: {} communication calls without their counterparts on the compared ranks, first {}; "
        "what they bring is not known",
        report_.ranks[ranks_[graph_.first_unpaired.rank]].pair.label(), graph_.unpaired,
        scan.calls[graph_.first_unpaired.call].name));
  }

 private:
  struct Candidate {
    bool explained = false;  // by bad values from another rank
    uint64_t layer = 0, sub_layer = 0;
    size_t rank = 0;
    uint64_t index = 0;
    size_t call = 0;
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };

  void MarkReceivers() {
    for (const RankScan& scan : scans_) receives_.emplace_back(scan.calls.size(), false);
    for (const CommLink& link : graph_.links) {
      const bool bad = std::any_of(link.from.begin(), link.from.end(), [&](const CommNode& node) {
        return scans_[node.rank].calls[node.call].bad_input.has_value();
      });
      if (!bad) continue;
      for (const CommNode& node : link.to) receives_[node.rank][node.call] = true;
    }
  }

  [[nodiscard]] bool ReceivedBefore(size_t rank, size_t calls) const {
    const auto begin = receives_[rank].begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(calls, receives_[rank].size()));
    return std::find(begin, end, true) != end;
  }

  [[nodiscard]] bool IsExplained(size_t rank, const WrongCall& wrong) const {
    if (ReceivedBefore(rank, wrong.place.calls_before)) return true;
    return wrong.comm_call && !wrong.enters && receives_[rank][*wrong.comm_call];
  }

  [[nodiscard]] uint64_t LayerOf(size_t rank, size_t calls_before) const {
    const std::vector<uint64_t>& layers = graph_.layers[rank];
    if (calls_before < layers.size()) return calls_before == 0 ? 0 : layers[calls_before];
    return layers.empty() ? 0 : layers.back() + 1;
  }

  // The first wrong call of the rank that nothing explains, else its first one.
  void AddRank(size_t rank, std::vector<Candidate>& candidates) const {
    const std::vector<WrongCall>& wrong = report_.ranks[ranks_[rank]].outcome->wrong;
    if (wrong.empty()) return;
    size_t chosen = 0;
    while (chosen < wrong.size() && IsExplained(rank, wrong[chosen])) ++chosen;
    Candidate candidate;
    candidate.explained = chosen == wrong.size();
    candidate.call = candidate.explained ? 0 : chosen;
    const EntryPlace& place = wrong[candidate.call].place;
    candidate.layer = wrong[candidate.call].comm_call
                          ? graph_.layers[rank][*wrong[candidate.call].comm_call]
                          : LayerOf(rank, place.calls_before);
    candidate.sub_layer = place.sub_layer;
    candidate.rank = rank;
    candidate.index = place.index;
    candidates.push_back(candidate);
  }

  RanksReport& report_;
  std::vector<RankScan> scans_;
  std::vector<size_t> ranks_;  // of each scan, in RanksReport::ranks
  CommGraph graph_;
  std::vector<std::vector<bool>> receives_;  // by scan and call: a bad value came in
};

CompareCounts Sum(const CompareCounts& a, const CompareCounts& b) {
  CountList sum = ListOf(a);
  const CountList more = ListOf(b);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  return CountsOf(sum);
}

}  // namespace

void SearchRanks(RanksReport& report) {
  bool found = false;
  for (size_t begin = 0, end = 0; begin < report.ranks.size(); begin = end) {
    while (end < report.ranks.size() &&
           report.ranks[end].pair.step == report.ranks[begin].pair.step) {
      ++end;
    }
    StepSearch search(report, begin, end);
    if (!found) found = search.Run();
    search.NoteCommunication();
  }
  for (const ComparedRank& rank : report.ranks) {
    if (rank.outcome) report.counts = Sum(report.counts, rank.outcome->counts);
  }
}

}  // namespace plumbline::pipeline
