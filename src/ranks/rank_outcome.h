// What stays in memory of one compared rank: its answer, its counts, and what the search over ranks
// needs. The rows themselves are in the rank's result files.

#ifndef PLUMBLINE_RANKS_RANK_OUTCOME_H_
#define PLUMBLINE_RANKS_RANK_OUTCOME_H_

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/carried_values.h"
#include "formats/json/json_feed.h"
#include "load/rank_scan.h"
#include "match/comm_trace.h"
#include "plumbline/compare.h"

namespace plumbline::ranks {

// All members of CompareCounts are counts: they are stored and added up as a list, so that one more
// needs no change here.
using CountList = std::array<uint64_t, sizeof(CompareCounts) / sizeof(uint64_t)>;
inline CountList ListOf(const CompareCounts& counts) { return std::bit_cast<CountList>(counts); }
inline CompareCounts CountsOf(const CountList& list) { return std::bit_cast<CompareCounts>(list); }

// A call where something goes wrong that the rank's own earlier calls do not explain.
struct WrongCall {
  std::string name;
  EntryPlace place;                 // in the target's dump; begin and end are not set
  std::optional<size_t> comm_call;  // index in RankOutcome::communication
  bool enters = false;              // an input or argument differs, not (only) a result
  std::string item, reason;         // the row that shows it
  double error = 0, expected = 0;   // of that row; NaN when there is none
};

// A plain value; it can be stored (FormatOutcome) and read back (ReadOutcome).
struct RankOutcome {
  CompareMode mode = CompareMode::kStatistics;
  measure::DigestKind digests = measure::DigestKind::kChecksum;  // of mode kDigest
  CompareCounts counts;
  DetectionLimit limit;
  bool complete = false;    // Comparison::is_complete()
  std::string answer_line;  // first line of SummaryText()
  // Which conditions of FailsOn() are met.
  std::vector<std::string> fails_on;
  std::optional<FirstWrongCall> first_wrong_call;
  // In recorded order; without those that can be the origin of nothing, as whatever explains an
  // earlier one explains them too.
  std::vector<WrongCall> wrong;
  uint64_t wrong_calls = 0;  // all of them
  // A bad input: a row of it is suspicious or broken.
  CommTrace communication;
  std::vector<CommGroup> groups;
  std::vector<compare::SentValue> sent;            // to other ranks, within noise
  std::vector<compare::ContentId> wrong_arrivals;  // by communication calls
  std::vector<std::string> warnings, files;
};

// `target`: the run whose calls the comparison holds.
RankOutcome OutcomeOf(const Run& target, const Comparison& comparison);

// One JSON object on one line.
std::string FormatOutcome(const RankOutcome& outcome);
// Reads such a text. kCorrupt when it is not one.
Result<RankOutcome> ReadOutcome(std::string_view text);
Result<RankOutcome> ReadOutcome(const json::Value& root);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_RANK_OUTCOME_H_
