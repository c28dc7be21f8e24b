// Mapping files applied: under which name a target call and its items are looked up in the golden
// recording.

#ifndef PLUMBLINE_MATCH_NAME_MAPPING_H_
#define PLUMBLINE_MATCH_NAME_MAPPING_H_

#include <string>
#include <string_view>
#include <vector>

#include "match/expand.h"
#include "match/mapping_file.h"

namespace plumbline::match {

// Sets mapped_name of the target's calls from a cell mapping: the path and class of a module are
// replaced where a line names them exactly, else every part of the name that a line names, in the
// order of the file. "Cell" becomes "Module" in any case; `pairs` may be empty.
void MapCells(const TextPairs& pairs, std::vector<CallItems>& target);

// Sets mapped_name (and mapped_parts, where a rule lists arguments) of the target's calls: Mint
// becomes Torch and MintFunctional Functional, the other APIs follow the built-in table, and rules
// of the user's for APIs that both recordings hold go first.
void MapApis(const std::vector<ApiRule>& rules, const std::vector<CallItems>& golden,
             std::vector<CallItems>& target);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_NAME_MAPPING_H_
