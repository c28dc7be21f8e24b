// Tensor parallel ranks folded into one model.

#ifndef PLUMBLINE_VIEW_MERGE_FOLD_TENSORS_H_
#define PLUMBLINE_VIEW_MERGE_FOLD_TENSORS_H_

#include <span>

#include "view/merge/parallel_layout.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

// Merges the statistics of tensors that the ranks hold parts of into the first tree: of calls below
// modules (not of communication, optimizer, clip_grad) those that differ between the ranks. In the
// forward call of a RowParallelLinear and the backward call of a ColumnParallelLinear, what a
// matmul returns is a part of a sum: its statistics become those of the all_reduce or
// reduce_scatter that takes it. Between a ColumnParallelLinear whose values look alike on all ranks
// and the RowParallelLinear behind it, everything is merged.
//
// `groups`: all tensor parallel groups of the run, which lead from calls that are marked with a
// rank to their peers. Requires: an index of each tree.
void FoldTensors(std::span<RankTree* const> trees, const RankGroups& groups);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_FOLD_TENSORS_H_
