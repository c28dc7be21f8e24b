// Which calls of two recordings are compared, and what is known before any number is.

#ifndef PLUMBLINE_COMPARE_PAIR_CALLS_H_
#define PLUMBLINE_COMPARE_PAIR_CALLS_H_

#include <cstdint>
#include <vector>

#include "match/expand.h"
#include "match/mapping_file.h"
#include "match/name_match.h"
#include "plumbline/compare.h"
#include "plumbline/run.h"

namespace plumbline::compare {

// Pairing the calls of two opened runs, with the mapping files that the user gave.

// One side; borrowed.
struct PairingSide {
  const Run& run;
  std::vector<match::CallItems>& calls;  // of run.calls(), in its order
};

// Reads the mapping files of `options` and pairs the calls. What is odd but no error (a line of a
// mapping that fits nothing, a name without direction) is added to comparison.warnings. Sets
// mapped_name and mapped_parts of the target's calls.
// `by_hand`: names of calls that pair whatever the rules find, value by value of the same part.
// Errors: those of match/mapping_file.h; kInvalidArgument when a mapping does not fit the
// frameworks of the runs.
Result<std::vector<match::CallPair>> PairCalls(const PairingSide& target, const PairingSide& golden,
                                               const CompareOptions& options,
                                               const match::TextPairs& by_hand,
                                               Comparison& comparison);

// What two runs can be compared by: digests, statistics or tensors.

// Of runs of one task and level; static graphs may hold tensors on one side and statistics on the
// other, and stand against calls only where a data mapping says what is the same.
// Errors: kInvalidArgument, which names the run that does not fit and what to record instead.
Result<CompareMode> ModeOf(const PairingSide& target, const PairingSide& golden,
                           bool has_data_mapping);

// Arguments that one side passes and the other leaves to their defaults. The calls are pairs all
// the same: what they return tells whether the argument is the default spelled out.

// Of one call, which arguments one side alone passes.
struct DefaultArguments {
  uint32_t call = 0;  // index into Comparison::calls, of the pair
  bool of_target = false;
  std::vector<Item> items;
};

// Takes them out of `pairs`, in order. Pairs beside which one side makes calls of its own, which
// may stand for the argument (a sum that is divided there, instead of a mean), are parted. The pair
// that the call's other items are in says in its detail what was taken, which is then
// ComparedCall::unmatched_detail of a pair.
std::vector<DefaultArguments> TakeDefaultArguments(std::vector<match::CallPair>& pairs,
                                                   const std::vector<match::CallItems>& target,
                                                   const std::vector<match::CallItems>& golden);

// Adds them to a judged comparison: rows right behind those of their calls, not comparable. What
// may act where no row shows it, or no more than rounding does, counts as a missing value.
void AddDefaultArguments(std::vector<DefaultArguments> arguments, Comparison& comparison);

// Two recordings that are not two runs of the same program: what to say before anything is judged.

// Puts a warning in front of the others for each of these: paths that look swapped, other levels,
// other steps, and calls that hardly pair (other models). Requires: the calls are paired.
void WarnOfUnlikeRuns(const Run& target, const Run& golden, Comparison& comparison);

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_PAIR_CALLS_H_
