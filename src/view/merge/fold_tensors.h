// Tensor parallel ranks folded into one model.

#ifndef PLUMBLINE_VIEW_MERGE_FOLD_TENSORS_H_
#define PLUMBLINE_VIEW_MERGE_FOLD_TENSORS_H_

#include <span>

#include "view/merge/parallel_layout.h"
#include "view/merge/partial_sums.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

// Merges the statistics of tensors that the ranks hold parts of into the first tree: of calls below
// modules and between them (not of communication, optimizer, clip_grad) those that differ between
// the ranks: summands become the sum, others are parts of one tensor. Between a
// ColumnParallelLinear whose values look alike on all ranks and the RowParallelLinear behind it,
// everything is merged.
//
// `groups`: all tensor parallel groups of the run, which lead from calls that are marked with a
// rank to their peers. Requires: an index of each tree.
void FoldTensors(std::span<RankTree* const> trees, const RankGroups& groups,
                 const PartialSums& sums);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_FOLD_TENSORS_H_
