// The tree of one recorded rank, without values: of modules where they were recorded, otherwise of
// its calls alone.

#ifndef PLUMBLINE_VIEW_STORE_RECORDED_TREE_H_
#define PLUMBLINE_VIEW_STORE_RECORDED_TREE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/run.h"
#include "view/model_graph.h"

namespace plumbline::view {

// Calls visit(name) for every call of the recording that must be in the tree, in order.
using ForEachCall = std::function<void(const std::function<void(std::string_view)>& visit)>;

// construct.json beside dump.json says what encloses what; where it is missing or empty, and for
// calls that it lacks, they stand on the top level, with a note. `gradients`: names of entries of
// parameter gradients. kCorrupt, kIo: construct.json cannot be read.
Result<ModelGraph> ReadTree(const Run& run, const ForEachCall& calls,
                            const std::vector<std::string>& gradients);

// The frames of a node: its own, of a backward call without any those of its forward call; null:
// not recorded.
const std::vector<std::string>* FramesOfNode(const Run& run, const std::string& name);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_RECORDED_TREE_H_
