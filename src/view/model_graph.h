// The trees of recordings (tree/model_graph.h) under the names that this room has for them.

#ifndef PLUMBLINE_VIEW_MODEL_GRAPH_H_
#define PLUMBLINE_VIEW_MODEL_GRAPH_H_

#include "tree/model_graph.h"

namespace plumbline::view {

using tree::AddParameterGradients;
using tree::BuildTree;
using tree::CollectApis;
using tree::kRootName;
using tree::ModelGraph;
using tree::Node;
using tree::NodesInOrder;
using tree::NodeType;
using tree::NodeTypeOf;
using tree::NumberMicroSteps;
using tree::PathTo;
using tree::SetMicroStep;

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MODEL_GRAPH_H_
