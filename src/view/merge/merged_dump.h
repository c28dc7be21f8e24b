// A folded tree as the files of a recording, which every reader of recordings reads.

#ifndef PLUMBLINE_VIEW_MERGE_MERGED_DUMP_H_
#define PLUMBLINE_VIEW_MERGE_MERGED_DUMP_H_

#include <cstdint>
#include <string>

#include "plumbline/result.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

// Writes construct.json, stack.json and dump.json into `directory`, which is made; dump.json is
// written last, and each file appears complete or not at all. Children stand before parents.
// Returns the number of nodes without the root. kInvalidArgument when there is a dump.json; kIo.
Result<uint64_t> WriteMergedDump(RankTree& tree, const std::string& directory);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_MERGED_DUMP_H_
