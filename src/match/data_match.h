// Pairing by a data mapping: single values instead of whole calls.

#ifndef PLUMBLINE_MATCH_DATA_MATCH_H_
#define PLUMBLINE_MATCH_DATA_MATCH_H_

#include <string>
#include <vector>

#include "match/mapping_file.h"
#include "match/name_match.h"

namespace plumbline::match {

// Pairs the target's values with the golden values that `mapping` names; unmapped values of the
// same calls keep their own name, then their place in the golden call of the mapped ones. Shapes
// and dtypes do not count. A call whose values go to several golden calls is several pairs; several
// values may go to one. All other calls pair as in MatchCalls(). Order as there.
// A line whose name neither recording has adds a sentence to `warnings`.
//
// The items of both sides are the same afterwards.
std::vector<CallPair> MatchByValues(std::vector<CallItems>& target, std::vector<CallItems>& golden,
                                    const TextPairs& mapping, const MatchOptions& options,
                                    std::vector<std::string>& warnings);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_DATA_MATCH_H_
