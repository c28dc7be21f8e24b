#include "overflow/first_overflow.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace plumbline {
namespace {

const CommCall& CallOf(std::span<const RankScan> scans, const CommNode& node) {
  return scans[node.rank].calls[node.call];
}

// By rank and call: a bad value went into the communication that this call takes values from.
std::vector<std::vector<bool>> FindReceivers(std::span<const RankScan> scans,
                                             const CommGraph& graph) {
  std::vector<std::vector<bool>> receives;
  for (const RankScan& scan : scans) receives.emplace_back(scan.calls.size(), false);
  for (const CommLink& link : graph.links) {
    const bool bad = std::any_of(link.from.begin(), link.from.end(), [&](const CommNode& node) {
      return CallOf(scans, node).bad_input.has_value();
    });
    if (!bad) continue;
    for (const CommNode& node : link.to) receives[node.rank][node.call] = true;
  }
  return receives;
}

// What went wrong in a rank's dump before communication is looked at.
class OriginFinder {
 public:
  OriginFinder(std::span<const RankScan> scans, const CommGraph& graph)
      : scans_(scans), graph_(graph), receives_(FindReceivers(scans, graph)) {}

  std::vector<OverflowOrigin> Run() {
    for (size_t rank = 0; rank < scans_.size(); ++rank) {
      for (const Suspect& suspect : scans_[rank].suspects) AddSuspect(rank, suspect);
      for (size_t call = 0; call < scans_[rank].calls.size(); ++call) AddCall({rank, call});
    }
    return std::move(origins_);
  }

 private:
  // A call before number `calls` of the rank got bad values from elsewhere, seen there or not.
  [[nodiscard]] bool ReceivedBefore(size_t rank, size_t calls) const {
    const auto& received = receives_[rank];
    return std::find(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(calls),
                     true) != received.begin() + static_cast<std::ptrdiff_t>(calls);
  }

  void Place(size_t rank, size_t calls_before, OverflowOrigin& origin) const {
    const std::vector<uint64_t>& layers = graph_.layers[rank];
    origin.layer = LayerBetween(layers, calls_before);
    origin.phase = layers.empty() || calls_before == 0 ? OverflowPhase::kBefore
                   : calls_before < layers.size()      ? OverflowPhase::kDuring
                                                       : OverflowPhase::kAfter;
  }

  void AddSuspect(size_t rank, const Suspect& suspect) {
    const bool given = suspect.reason == OverflowReason::kGiven;
    if (suspect.encloses || (given && ReceivedBefore(rank, suspect.place.calls_before))) return;
    OverflowOrigin origin;
    origin.rank = rank;
    origin.name = suspect.name;
    origin.place = suspect.place;
    origin.reason = suspect.reason;
    origin.value = suspect.value;
    origin.argument = suspect.argument;
    origin.is_minor = suspect.recompute || suspect.harmless ||
                      suspect.reason == OverflowReason::kRequested ||
                      (given && suspect.value.only_negative);
    Place(rank, suspect.place.calls_before, origin);
    origins_.push_back(std::move(origin));
  }

  void AddCall(const CommNode& node) {
    const CommCall& call = CallOf(scans_, node);
    const bool given = call.given && !ReceivedBefore(node.rank, node.call);
    const bool produced = call.bad_output && !call.bad_input && !receives_[node.rank][node.call];
    if (!given && !produced) return;
    OverflowOrigin origin;
    origin.rank = node.rank;
    origin.name = call.name;
    origin.place = call.place;
    origin.is_communication = true;
    origin.phase = OverflowPhase::kDuring;
    origin.layer = graph_.layers[node.rank][node.call];
    origin.reason = given ? OverflowReason::kGiven : OverflowReason::kProduced;
    if (call.flagged) origin.reason = OverflowReason::kFlagged;
    origin.value = given ? *call.bad_input : *call.bad_output;
    origin.is_minor = given && origin.value.only_negative;
    origins_.push_back(std::move(origin));
  }

  std::span<const RankScan> scans_;
  const CommGraph& graph_;
  std::vector<std::vector<bool>> receives_;
  std::vector<OverflowOrigin> origins_;
};

bool Before(const OverflowOrigin& a, const OverflowOrigin& b) {
  return std::tie(a.is_minor, a.phase, a.layer, a.place.sub_layer, a.rank, a.place.index) <
         std::tie(b.is_minor, b.phase, b.layer, b.place.sub_layer, b.rank, b.place.index);
}

std::vector<size_t> ChooseReported(const std::vector<OverflowOrigin>& origins) {
  if (origins.empty()) return {};
  const OverflowOrigin& answer = origins.front();
  std::vector<size_t> reported{0};
  if (answer.phase == OverflowPhase::kDuring) return reported;
  std::vector<bool> has_one;
  const auto mark = [&](size_t rank) {
    if (has_one.size() <= rank) has_one.resize(rank + 1, false);
    const bool is_new = !has_one[rank];
    has_one[rank] = true;
    return is_new;
  };
  mark(answer.rank);
  for (size_t i = 1; i < origins.size(); ++i) {
    const bool same = origins[i].phase == answer.phase && origins[i].is_minor == answer.is_minor;
    if (same && mark(origins[i].rank)) reported.push_back(i);
  }
  std::sort(reported.begin(), reported.end(),
            [&](size_t a, size_t b) { return origins[a].rank < origins[b].rank; });
  return reported;
}

}  // namespace

OverflowAnalysis FindFirstOverflow(std::span<const RankScan> scans) {
  OverflowAnalysis analysis;
  analysis.graph = BuildCommGraph(scans);
  analysis.origins = OriginFinder(scans, analysis.graph).Run();
  std::sort(analysis.origins.begin(), analysis.origins.end(), Before);
  analysis.reported = ChooseReported(analysis.origins);
  return analysis;
}

}  // namespace plumbline
