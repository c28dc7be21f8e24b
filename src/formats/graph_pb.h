// ms_output_trace_code_graph_*.pb: a compiled graph of MindSpore as a protocol buffer.

#ifndef PLUMBLINE_FORMATS_GRAPH_PB_H_
#define PLUMBLINE_FORMATS_GRAPH_PB_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "formats/graph_pb_value.h"
#include "plumbline/result.h"

namespace plumbline::graph_pb {

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

#endif  // PLUMBLINE_FORMATS_GRAPH_PB_H_
