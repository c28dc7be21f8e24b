// The answer over all ranks and steps of two dumps, from the outcomes of the single ranks.

#ifndef PLUMBLINE_RANKS_RANK_SUMMARY_H_
#define PLUMBLINE_RANKS_RANK_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/rank_directories.h"
#include "ranks/collective_check.h"
#include "ranks/rank_outcome.h"

namespace plumbline::ranks {

enum class RankState : uint8_t {
  kCompared,
  kTakenOver,  // compared by an earlier run; inputs and results have not changed since
  kFailed,     // see ComparedRank::error
  kMissing,    // one side has no such rank or step
};
std::string_view RankStateName(RankState state);  // "compared", "taken over", "failed", "missing"

struct ComparedRank {
  load::RankPair pair;
  RankState state = RankState::kMissing;
  std::optional<Error> error;          // of kFailed
  std::optional<RankOutcome> outcome;  // of kCompared and kTakenOver
  std::string page_path;               // file with its part of the page; empty: there is no page
  std::string shard{};                 // "3/64": whose part it was, of MergeShards()
};
// What to do about a rank whose files are not as they were written.
std::string HowToCompareAgain(const ComparedRank& rank);

// A wrong call that nothing before it explains, on its rank or on those it communicates with.
struct RankOrigin {
  size_t rank = 0;     // index in RanksReport::ranks
  size_t call = 0;     // index in RankOutcome::wrong
  uint64_t layer = 0;  // communication calls that must have come before, on any rank
};

struct RanksReport {
  std::string target_path, golden_path;
  bool has_steps = false;
  std::vector<ComparedRank> ranks;  // by step, then by rank
  std::vector<std::string> notes;   // what else was not judged, one sentence each
  // At most one per rank of the first step that has any, in order of time as far as communication
  // tells; the first one is the answer.
  std::vector<RankOrigin> origins;
  // What CheckCollectives() found on each side; it changes no answer. Empty: not asked for.
  std::vector<CollectiveReport> collectives;
  CompareCounts counts;            // of all ranks together
  std::vector<std::string> files;  // of the summary; those of a rank are in its outcome
  // Why files over all ranks were not written, which then are not in `files`: one sentence.
  std::optional<Error> unwritten;

  [[nodiscard]] size_t CountOf(RankState state) const;
  [[nodiscard]] size_t compared() const {
    return CountOf(RankState::kCompared) + CountOf(RankState::kTakenOver);
  }
  // Every rank of both sides was compared, and completely.
  [[nodiscard]] bool is_complete() const;
  // Requires: an origin.
  [[nodiscard]] const WrongCall& answer() const {
    return ranks[origins.front().rank].outcome->wrong[origins.front().call];
  }
};

// Fills origins, counts and the notes about communication from `ranks`.
void SearchRanks(RanksReport& report);

// The call that the answer names, as far as it is known: all of it where the rank itself names it.
// Requires: an origin.
FirstWrongCall AnswerCall(const RanksReport& report);

// The first line: "first wrong call: rank 2 Torch.mul.3.forward", or that and why there is none.
std::string RanksAnswer(const RanksReport& report);
// The answer and the counts as `plumb compare` prints them, each line ended by '\n'.
std::string RanksSummaryText(const RanksReport& report);
// The same as one JSON object (docs/reference/compare.md, "several ranks").
Result<std::string> RanksSummaryJson(const RanksReport& report);
// As FailsOn() of one comparison, over all ranks; a missing or failed rank counts as unmatched.
Result<bool> FailsOn(const RanksReport& report, const std::vector<std::string>& conditions);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_RANK_SUMMARY_H_
