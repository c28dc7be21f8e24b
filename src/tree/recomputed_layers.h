// Layers that activation checkpointing runs again, which a recorder finds on the top level.

#ifndef PLUMBLINE_TREE_RECOMPUTED_LAYERS_H_
#define PLUMBLINE_TREE_RECOMPUTED_LAYERS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tree/model_graph.h"

namespace plumbline::tree {

// Whether the frames of a call show that autograd ran it again in a backward pass.
bool RunsAgain(const std::vector<std::string>& frames);

// Frames of a forward call, innermost first; null: not recorded.
using FramesOf = std::function<const std::vector<std::string>*(std::string_view name)>;

// Moves them from the top level below the backward call of the module that holds the layer: of one
// layer, the k-th that ran again belongs to the k-th forward call that did not. The frames prove
// that it ran again; on MindSpore, which has none of autograd, the names alone.
void PlaceRecomputedLayers(bool is_mindspore, const FramesOf& frames_of, ModelGraph& graph);

}  // namespace plumbline::tree

#endif  // PLUMBLINE_TREE_RECOMPUTED_LAYERS_H_
