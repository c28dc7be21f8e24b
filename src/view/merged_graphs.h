// Files for viewers of graphs, and recordings, made of parallel runs whose ranks are merged.

#ifndef PLUMBLINE_VIEW_MERGED_GRAPHS_H_
#define PLUMBLINE_VIEW_MERGED_GRAPHS_H_

#include <string>

#include "plumbline/result.h"
#include "view/graph_files.h"
#include "view/merge/merge_ranks.h"
#include "view/merge/parallel_layout.h"

namespace plumbline::view {

// As WriteGraphFiles() of the merged recordings, which stand in a hidden directory in the output
// directory meanwhile: the k-th merged rank of a step is compared with the k-th of golden.
// kInvalidArgument: options.filter names ranks, the layouts are wrong (CheckLayout()), or merging
// leaves another number of graphs on each side.
Result<GraphFileReport> WriteMergedGraphFiles(const std::string& target, const std::string& golden,
                                              const GraphFileOptions& options,
                                              const ParallelOptions& parallel);

// Writes the merged recordings themselves into the output directory. Errors as above.
Result<MergeReport> WriteMergedDumps(const std::string& target, const GraphFileOptions& options,
                                     const ParallelOptions& parallel);

// "8 ranks merged into 2 recordings of 480 nodes", a line for each follows.
std::string MergeAnswer(const MergeReport& report);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGED_GRAPHS_H_
