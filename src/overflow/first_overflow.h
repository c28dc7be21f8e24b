// The first NaN or Inf over all ranks of a step, communication order taken into account.

#ifndef PLUMBLINE_OVERFLOW_FIRST_OVERFLOW_H_
#define PLUMBLINE_OVERFLOW_FIRST_OVERFLOW_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "load/rank_scan.h"
#include "match/comm_graph.h"

namespace plumbline {

// When on its rank: before the first communication call, during, or after the last one. Bad values
// that appear earlier cannot come from another rank.
enum class OverflowPhase : uint8_t { kBefore = 1, kDuring = 2, kAfter = 3 };

// An entry where bad values come from.
struct OverflowOrigin {
  size_t rank = 0;  // position in the scans
  std::string name;
  EntryPlace place;
  bool is_communication = false;
  OverflowPhase phase = OverflowPhase::kBefore;
  uint64_t layer = 0;  // of the communication call it is or precedes (comm_graph.h)
  OverflowReason reason = OverflowReason::kProduced;
  // -Inf as masks have it, an input without effect, or a repeated forward: comes after the rest.
  bool is_minor = false;
  BadValue value;
  std::string argument;  // path of a plain number among the arguments that is not finite
};

struct OverflowAnalysis {
  // All independent origins of all ranks: ordinary before minor ones, then by phase, layer,
  // position since the last communication call, rank, position in the dump. The first one is the
  // answer.
  std::vector<OverflowOrigin> origins;
  // Which of them upstream's file names: of the answer's phase, the answer alone during
  // communication, otherwise the first of each rank. Positions in `origins`, by rank.
  std::vector<size_t> reported;
  CommGraph graph;
};

// Pure; the same scans give the same analysis.
OverflowAnalysis FindFirstOverflow(std::span<const RankScan> scans);

}  // namespace plumbline

#endif  // PLUMBLINE_OVERFLOW_FIRST_OVERFLOW_H_
