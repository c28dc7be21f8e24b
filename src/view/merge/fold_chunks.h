// The parts of a model that each rank of an interleaved pipeline holds, folded into one model.

#ifndef PLUMBLINE_VIEW_MERGE_FOLD_CHUNKS_H_
#define PLUMBLINE_VIEW_MERGE_FOLD_CHUNKS_H_

#include <cstdint>

#include "view/merge/rank_tree.h"

namespace plumbline::view {

// Folds "Module.1", ..., "Module.{chunks - 1}" into "Module.0": the layers follow those of chunk 0
// in forward and precede them in backward, numbered on; outputs of modules around them are those of
// the last chunk, and inputs of their backward calls. What a later chunk alone has goes beside what
// stands in chunk 0; the rest of it vanishes. Requires: an index of the tree.
void FoldChunks(int64_t chunks, RankTree& tree);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_FOLD_CHUNKS_H_
