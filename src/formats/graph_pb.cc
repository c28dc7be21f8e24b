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
constexpr uint64_t kNodeInput = 1, kNodeName = 2, kNodeType = 3, kNodeAttribute = 5,
                   kNodeOutput = 6, kNodeFullName = 8, kNodeSource = 9;
// Inputs, attributes, parameters and constants: a name or key, then a type or value.
constexpr uint64_t kFirst = 1, kSecond = 2;

// Hands the text of the first field and the message in the second one to `first` and `second`.
template <class First, class Second>
Status ReadPair(MessageReader in, const First& first, const Second& second) {
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (!field.is_bytes()) continue;
    if (field.number == kFirst) first(std::string(field.text()));
    if (field.number == kSecond) PL_TRY(second(in.Inside(field)));
  }
  return {};
}

Result<Attribute> ReadAttribute(MessageReader in) {
  Attribute attribute{"", "None"};
  const auto take_name = [&](std::string text) { attribute.name = std::move(text); };
  PL_TRY(ReadPair(in, take_name, [&](MessageReader value) -> Status {
    PL_TRY_ASSIGN(Value read, ReadValue(value));
    attribute.value = read.text == "NONE" ? "None" : std::move(read.text);
    return {};
  }));
  return attribute;
}

Result<Parameter> ReadParameter(MessageReader in) {
  Parameter parameter;
  const auto take_name = [&](std::string text) { parameter.name = std::move(text); };
  PL_TRY(ReadPair(in, take_name, [&](MessageReader type) -> Status {
    PL_TRY_ASSIGN(parameter.outputs, ReadType(type));
    return {};
  }));
  return parameter;
}

Result<Constant> ReadConstant(MessageReader in) {
  Constant constant{"", {"NONE", std::nullopt}};
  const auto take_name = [&](std::string text) { constant.name = std::move(text); };
  PL_TRY(ReadPair(in, take_name, [&](MessageReader value) -> Status {
    PL_TRY_ASSIGN(constant.value, ReadValue(value));
    return {};
  }));
  return constant;
}

// The name of an input.
Result<std::string> ReadInput(MessageReader in) {
  std::string name;
  PL_TRY(ReadPair(
      in, [&](std::string text) { name = std::move(text); },
      [](const MessageReader&) { return Status(); }));
  return name;
}

Status TakeNodeField(const Field& field, const MessageReader& in, Node& node) {
  if (field.number == kNodeInput) {
    PL_TRY_ASSIGN(std::string name, ReadInput(in.Inside(field)));
    node.inputs.push_back(std::move(name));
  } else if (field.number == kNodeName) {
    node.name = field.text();
  } else if (field.number == kNodeType) {
    node.op_type = field.text();
  } else if (field.number == kNodeAttribute) {
    PL_TRY_ASSIGN(Attribute attribute, ReadAttribute(in.Inside(field)));
    node.attributes.push_back(std::move(attribute));
  } else if (field.number == kNodeOutput) {
    PL_TRY_ASSIGN(node.outputs, ReadType(in.Inside(field)));
  } else if (field.number == kNodeFullName) {
    node.full_name = field.text();
  } else if (field.number == kNodeSource) {
    node.source = field.text();
  }
  return {};
}

Result<Node> ReadNode(MessageReader in) {
  Node node;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.is_bytes()) PL_TRY(TakeNodeField(field, in, node));
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
    } else if (field.number == kGraphParameter) {
      PL_TRY_ASSIGN(Parameter parameter, ReadParameter(in.Inside(field)));
      graph.parameters.push_back(std::move(parameter));
    } else if (field.number == kGraphConstant) {
      PL_TRY_ASSIGN(Constant constant, ReadConstant(in.Inside(field)));
      graph.constants.push_back(std::move(constant));
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
