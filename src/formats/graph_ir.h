// The text form of a compiled graph of MindSpore: what save_graphs and its dump write as *.ir.

#ifndef PLUMBLINE_FORMATS_GRAPH_IR_H_
#define PLUMBLINE_FORMATS_GRAPH_IR_H_

#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::graph_ir {

// All views are into the text that was parsed.
struct Node {
  std::string_view id;         // "%5"
  std::string_view name;       // "CNode_12"
  std::string_view op;         // "PrimFunc_MatMul"; "call @f" of calls
  std::string_view subgraph;   // "kernel_graph1"
  std::string_view full_name;  // "Default/net/fc/MatMul-op0"; empty before MindSpore gives names
  // Numbers as texts: of a node of the forward pass, and of the one that a gradient belongs to.
  std::string_view unique_id, forward_unique_id;
  // Whole lines "      # In file {path}:{line}/{code}/", as they stand; see SourceLines().
  std::string_view source;
};

struct Graph {
  std::vector<Node> nodes;  // of all subgraphs in the order of the text; without Return
  bool is_cut = false;      // the text ends inside a subgraph
};

// Forms of all releases; lines that are not known are stepped over. kCorrupt for a text with no
// node.
Result<Graph> Parse(std::string_view text);

// The lines of a trace, of Node::source or of a node in formats/graph_pb.h, without "# " in front
// and "/" behind.
std::vector<std::string_view> SourceLines(std::string_view source);

}  // namespace plumbline::graph_ir

#endif  // PLUMBLINE_FORMATS_GRAPH_IR_H_
