// What is known of one rank of a result, and its text in the result's file.

#ifndef PLUMBLINE_VIEW_RANK_FACTS_H_
#define PLUMBLINE_VIEW_RANK_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "plumbline/compare.h"
#include "plumbline/result.h"
#include "view/compare_graphs.h"

namespace plumbline::view {

// One rank of one step that was compared.
struct RankAnswer {
  std::string label;  // "rank 3", "step 2 rank 3"
  std::string task;   // of the comparison, as the files spell it
  // As plumb compare has them for this rank: its first line, and all of them; empty, none and false
  // where only structure is known.
  std::string answer, text;
  std::optional<FirstWrongCall> first_wrong_call;
  bool is_complete = false;
  NodeCounts counts;
};

// One rank of one step in a file.
struct RankFacts {
  uint64_t nodes = 0, golden_nodes = 0;  // the root is none of the model
  uint64_t overflows = 0;                // nodes of the target with a level
  int64_t micro_steps = 1;
  std::string fingerprint;  // of what it was made of; empty: not known
  std::vector<std::string> notes;
  std::optional<RankAnswer> answer;
};

// Its members as one object.
json::Value FirstCallFacts(const FirstWrongCall& call);

// The key of a rank's facts in a file, and the facts as JSON.
std::string RankFactsKey(int64_t step, int64_t rank);  // "step2/rank3"
std::string RankFactsText(const RankFacts& facts);
// kCorrupt for a text that is no JSON object; what is missing stays empty.
Result<RankFacts> ParseRankFacts(std::string_view text);

// Calls visit(name, number) for every count, constant or not: as machine forms have them.
template <class Counts, class Visit>
void VisitCounts(Counts& counts, const Visit& visit) {
  for (const vis::Level level : {vis::Level::kPass, vis::Level::kWarning, vis::Level::kError}) {
    visit(vis::LevelName(level), counts.levels[static_cast<size_t>(level)]);
  }
  visit("without_level", counts.not_judged);
  visit("unmatched_target", counts.unmatched_target);
  visit("unmatched_golden", counts.unmatched_golden);
}

// "1 error, 2 warning, 3 pass, 0 without level, 0 and 0 without counterpart".
std::string CountsText(const NodeCounts& counts);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_RANK_FACTS_H_
