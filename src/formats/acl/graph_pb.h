// A compiled graph of MindSpore as its dump holds it: as a protocol buffer (graph_pb) and as a text
// (graph_ir).

#ifndef PLUMBLINE_FORMATS_ACL_GRAPH_PB_H_
#define PLUMBLINE_FORMATS_ACL_GRAPH_PB_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/protobuf_wire.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::graph_pb {

// Values and types inside a compiled graph of MindSpore: ValueProto and TypeProto.

// A tensor or a number; of a tensor with a shape, where sizes of -1 are not known.
struct TensorType {
  std::string dtype;  // "float32", "tuple"; "type 99" for numbers without a name; empty: none
  std::optional<Shape> shape;
};

// What a TypeProto says: the parts of a tuple, otherwise one; none for no value.
Result<std::vector<TensorType>> ReadType(protobuf::MessageReader in);

struct Value {
  // As Python prints it: "1.5", "('x', 2)", "'float32'"; "NONE" without a type, "TENSOR".
  std::string text;
  std::optional<TensorType> tensor;
};

// What a ValueProto says. kCorrupt also for values that are nested more than 32 times.
Result<Value> ReadValue(protobuf::MessageReader in);

// ms_output_trace_code_graph_*.pb: a compiled graph of MindSpore as a protocol buffer.

struct Attribute {
  std::string name, value;  // as Python prints it
};

struct Node {
  std::string name;                 // a number as text; other nodes take its output by it
  std::string op_type;              // "Conv2D"
  std::string full_name;            // "Default/net/conv1-Conv2d/Conv2D-op12"
  std::string source;               // lines "# In file {path}:{line}/{code}/"
  std::vector<std::string> inputs;  // names of nodes, parameters and constants
  std::vector<TensorType> outputs;
  std::vector<Attribute> attributes;
};

struct Parameter {
  std::string name;
  std::vector<TensorType> outputs;
};

struct Constant {
  std::string name;
  Value value;
};

struct Graph {
  std::string name;
  std::string root_name;  // number of the root graph as text
  std::vector<Node> nodes;
  std::vector<Parameter> parameters;
  std::vector<Constant> constants;
};

// Fields that are not named here are stepped over. kCorrupt for bytes that are cut or no protocol
// buffer, with their place; kNotFound and kIo of the file.
Result<Graph> Parse(std::span<const std::byte> bytes);
Result<Graph> Read(const std::string& path);

}  // namespace plumbline::graph_pb

namespace plumbline::graph_ir {

// The text form of a compiled graph of MindSpore: what save_graphs and its dump write as *.ir.

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

// The lines of a trace, of Node::source or of a graph_pb::Node, without "# " in front
// and "/" behind.
std::vector<std::string_view> SourceLines(std::string_view source);

}  // namespace plumbline::graph_ir

#endif  // PLUMBLINE_FORMATS_ACL_GRAPH_PB_H_
