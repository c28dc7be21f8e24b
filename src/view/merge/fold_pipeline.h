// The ranks of one pipeline folded into one model.

#ifndef PLUMBLINE_VIEW_MERGE_FOLD_PIPELINE_H_
#define PLUMBLINE_VIEW_MERGE_FOLD_PIPELINE_H_

#include <cstdint>
#include <span>

#include "view/merge/rank_tree.h"

namespace plumbline::view {

// Folds the trees of all ranks of a pipeline, in its order, into the first one:
//
// - a layer of one name on several ranks is as many layers: those of later ranks follow in forward
//   and precede in backward, and are numbered on; calls of APIs in them are marked with their rank;
// - a module around layers returns what it returns on the last rank, and of its gradients takes
//   what it takes there;
// - what other ranks alone have goes beside what stands there.
//
// With `chunks` above 1, the parts "Module.0", "Module.1", ... of the model on each rank become one
// in the same way. `optimizer` and `clip_grad` stay those of the first rank.
void FoldPipeline(std::span<RankTree* const> stages, int64_t chunks);

// Calls of APIs between the modules, which the ranks number on their own:
// Apis_Between_Modules_All_Ranks.k holds Apis_Between_Modules_Rank{r}.k of each rank, in which
// those of other ranks than the first are marked. The first of `trees` gets them.
void FoldLooseCalls(std::span<RankTree* const> trees);

// Whether the part is what every rank has for itself: optimizer, clip_grad.
bool IsOwnOfRank(const Part& part);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_FOLD_PIPELINE_H_
