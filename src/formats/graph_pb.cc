#include "formats/graph_pb.h"

#include <cstdint>
#include <utility>

#include "base/file.h"
#include "base/protobuf_wire.h"

namespace plumbline::graph_pb {
namespace {

using protobuf::Field;
using protobuf::MessageReader;

// Field numbers of MindSpore's messages.
constexpr uint64_t kModelGraph = 4;
constexpr uint64_t kGraphNode = 1, kGraphName = 2, kGraphParameter = 3, kGraphConstant = 5,
                   kGraphRoot = 6;
constexpr uint64_t kNodeInput = 1, kNodeName = 2, kNodeType = 3, kNodeFullName = 8, kNodeSource = 9;
constexpr uint64_t kFirst = 1;  // the name or key of inputs, parameters and constants

// The text in the first field of a message: a name or a key.
Result<std::string> FirstText(MessageReader in) {
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number == kFirst && field.is_bytes()) return std::string(field.text());
  }
  return std::string();
}

Result<Node> ReadNode(MessageReader in) {
  Node node;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (!field.is_bytes()) continue;
    if (field.number == kNodeInput) {
      PL_TRY_ASSIGN(std::string name, FirstText(in.Inside(field)));
      node.inputs.push_back(std::move(name));
    } else if (field.number == kNodeName) {
      node.name = field.text();
    } else if (field.number == kNodeType) {
      node.op_type = field.text();
    } else if (field.number == kNodeFullName) {
      node.full_name = field.text();
    } else if (field.number == kNodeSource) {
      node.source = field.text();
    }
  }
  return node;
}

Status ReadGraph(MessageReader in, Graph& graph) {
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (!field.is_bytes()) continue;
    if (field.number == kGraphNode) {
      PL_TRY_ASSIGN(Node node, ReadNode(in.Inside(field)));
      graph.nodes.push_back(std::move(node));
    } else if (field.number == kGraphName) {
      graph.name = field.text();
    } else if (field.number == kGraphRoot) {
      graph.root_name = field.text();
    } else if (field.number == kGraphParameter || field.number == kGraphConstant) {
      PL_TRY_ASSIGN(std::string name, FirstText(in.Inside(field)));
      auto& names = field.number == kGraphParameter ? graph.parameters : graph.constants;
      names.push_back(std::move(name));
    }
  }
  return {};
}

}  // namespace

Result<Graph> Parse(std::span<const std::byte> bytes) {
  Graph graph;
  MessageReader in(bytes);
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number != kModelGraph || !field.is_bytes()) continue;
    PL_TRY(ReadGraph(in.Inside(field), graph));
  }
  return graph;
}

Result<Graph> Read(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  Result<Graph> graph = Parse(std::as_bytes(std::span(text)));
  if (!graph) return graph.error().In(path);
  return graph;
}

}  // namespace plumbline::graph_pb
