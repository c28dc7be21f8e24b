// Whether the collective calls and messages of one recording did what they are for, by the
// statistics of its ranks; no second recording is needed.

#ifndef PLUMBLINE_RANKS_COLLECTIVE_CHECK_H_
#define PLUMBLINE_RANKS_COLLECTIVE_CHECK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/json_feed.h"
#include "load/rank_directories.h"

namespace plumbline::ranks {

// The first thing that is wrong about one collective call of a group, or about one message.
struct CollectiveViolation {
  std::optional<int64_t> step;
  std::vector<int64_t> group;   // the ranks of it; of a message its sender and its receiver
  std::string group_id;         // empty: not recorded
  std::string rule;             // what should hold
  std::vector<int64_t> ranks;   // where it does not, ascending; empty: over all of them together
  std::string name;             // the call on the first of those, or on the first of the group
  std::string item, statistic;  // "output.0", "Max"
  std::string expected, got;    // as Python spells them
  std::string source;           // what is expected there: "rank 0 Distributed.send.0.forward ..."
};

// Calls and messages that were not judged, of one reason.
struct UnjudgedCollectives {
  std::string reason;
  uint64_t calls = 0;
  std::string first;  // "step 2 rank 0 Distributed.all_reduce.4.forward"
};

// A collective counts once over all of its ranks, as does a message.
struct CollectiveReport {
  std::string side;  // "the target", "golden", "both sides": of whose calls this is
  uint64_t held = 0, violated = 0, not_judged = 0;
  std::vector<CollectiveViolation> violations;
  std::vector<UnjudgedCollectives> reasons;  // in order of occurrence
  // Groups with the same members whose calls ranks start in another order, one sentence each.
  std::vector<std::string> orders;
  std::vector<std::string> notes;  // ranks that could not be read completely, one sentence each
};

// Adds the calls of one step, whose rank directories are given. A call is judged where every rank
// of its group recorded it complete, as often as the others did, with statistics that can tell; all
// others are not judged. What holds (docs/reference/compare-ranks.md#collectives): outputs of
// all_reduce are equal, all_gather, broadcast and scatter give what their sources gave,
// reduce_scatter gives each rank a slice of its own, a message arrives as it was sent, all_to_all
// hands on its parts.
void CheckCollectives(std::span<const load::RankDirectory> ranks, std::optional<int64_t> step,
                      CollectiveReport& report);

// The report as `plumb compare` prints it, each line ended by '\n'.
std::string CollectiveLines(const CollectiveReport& report);
// The same as one JSON object.
void AddCollectives(const CollectiveReport& report, json::Document& out);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_COLLECTIVE_CHECK_H_
