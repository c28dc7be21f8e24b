#include "formats/acl/graph_pb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "base/text/protobuf_wire.h"
#include "base/text/text_parts.h"

namespace plumbline::graph_pb {

namespace {

using protobuf::Field;
using protobuf::MessageReader;

// Field numbers of MindSpore's messages.
constexpr uint64_t kTypeData = 1, kTypeTensor = 2, kTypeSequence = 3;
constexpr uint64_t kTensorElement = 1, kTensorShape = 2;
constexpr uint64_t kValueType = 1, kValueBool = 2, kValueInt = 3, kValueUint = 4, kValueFloat = 5,
                   kValueDouble = 6, kValueText = 7, kValueTensor = 8, kValueItems = 18,
                   kValueOfType = 20;
constexpr uint64_t kDataDims = 4, kDataType = 5;

// Numbers of DataType; those of lists of one type (16 to 30) are not used for values here.
constexpr uint64_t kTensor = 14, kTuple = 31, kList = 32, kNone = 34;
constexpr std::string_view kNames[] = {
    "",       "bool",   "int8",    "int16",   "int32",   "int64",  "uint8",  "uint16",
    "uint32", "uint64", "float16", "float32", "float64", "string", "tensor", "graph",
};

std::string DTypeName(uint64_t number) {
  if (number < std::size(kNames)) return std::string(kNames[number]);
  if (number == kTuple) return "tuple";
  if (number == kList) return "list";
  constexpr uint64_t kInt = 36, kUint = 37, kFloat = 38;
  if (number == kInt) return "int";
  if (number == kUint) return "uint";
  if (number == kFloat) return "float";
  return fmt::format("type {}", number);
}

// repr() of a text in ASCII quotes.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

template <class Float, class Bits>
std::string FloatText(const Field& field) {
  Bits bits = 0;
  if (field.bytes.size() == sizeof(bits)) std::memcpy(&bits, field.bytes.data(), sizeof(bits));
  return PythonFloat(static_cast<double>(std::bit_cast<Float>(bits)));
}

// The sizes in a TensorShapeProto.
Result<Shape> ReadShape(MessageReader in) {
  Shape shape;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number != 1 || !field.is_bytes()) continue;
    int64_t size = 0;
    MessageReader dimension = in.Inside(field);
    while (!dimension.is_done()) {
      PL_TRY_ASSIGN(const Field part, dimension.Next());
      if (part.number == 1 && part.is_number()) size = static_cast<int64_t>(part.value);
    }
    shape.push_back(size);
  }
  return shape;
}

Result<TensorType> ReadTensorType(MessageReader in) {
  TensorType type{"", Shape()};
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number == kTensorElement && field.is_number()) type.dtype = DTypeName(field.value);
    if (field.number == kTensorShape && field.is_bytes()) {
      PL_TRY_ASSIGN(type.shape, ReadShape(in.Inside(field)));
    }
  }
  return type;
}

// An element of a sequence: a tensor, a number, or a sequence, whose own elements are not told.
Result<TensorType> ReadElement(MessageReader in) {
  TensorType type;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number == kTypeData && field.is_number()) type.dtype = DTypeName(field.value);
    if (field.number == kTypeTensor && field.is_bytes()) {
      PL_TRY_ASSIGN(type, ReadTensorType(in.Inside(field)));
      return type;
    }
  }
  return type;
}

// dtype and sizes of a TensorProto, whose elements are not in the graph.
Result<TensorType> ReadTensorData(MessageReader in) {
  TensorType type{"", Shape()};
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number == kDataType && field.is_number()) type.dtype = DTypeName(field.value);
    if (field.number != kDataDims) continue;
    if (field.is_number()) type.shape->push_back(static_cast<int64_t>(field.value));
    if (!field.is_bytes()) continue;
    MessageReader packed = in.Inside(field);
    while (!packed.is_done()) {
      PL_TRY_ASSIGN(const uint64_t size, packed.Varint());
      type.shape->push_back(static_cast<int64_t>(size));
    }
  }
  return type;
}

class ValueReader {
 public:
  explicit ValueReader(int depth) : depth_(depth) {}

  Result<Value> Read(MessageReader in) {
    while (!in.is_done()) {
      PL_TRY_ASSIGN(const Field field, in.Next());
      PL_TRY(Take(field, in));
    }
    if (type_ == 0 || type_ == kNone) return Value{"NONE", std::nullopt};
    if (type_ == kTensor) return Value{"TENSOR", tensor_};
    const bool is_single = items_.size() == 1;
    if (type_ == kTuple) {
      return Value{fmt::format("({}{})", fmt::join(items_, ", "), is_single ? "," : ""), {}};
    }
    if (type_ == kList) return Value{fmt::format("[{}]", fmt::join(items_, ", ")), {}};
    if (text_.empty()) text_ = DTypeName(type_);  // a kind that has no value here
    return Value{std::move(text_), std::nullopt};
  }

 private:
  Status Take(const Field& field, const MessageReader& in) {
    switch (field.number) {
      case kValueType:
        type_ = field.value;
        return {};
      case kValueBool:
        text_ = field.value != 0 ? "True" : "False";
        return {};
      case kValueInt:
        text_ = std::to_string(static_cast<int64_t>(field.value));
        return {};
      case kValueUint:
        text_ = std::to_string(field.value);
        return {};
      case kValueFloat:
        text_ = FloatText<float, uint32_t>(field);
        return {};
      case kValueDouble:
        text_ = FloatText<double, uint64_t>(field);
        return {};
      case kValueText:
        text_ = Quoted(field.text());
        return {};
      default:
        return field.is_bytes() ? TakeInside(field, in) : Status();
    }
  }

  Status TakeInside(const Field& field, const MessageReader& in) {
    if (field.number == kValueTensor) {
      PL_TRY_ASSIGN(tensor_, ReadTensorData(in.Inside(field)));
    } else if (field.number == kValueOfType) {
      PL_TRY_ASSIGN(const std::vector<TensorType> types, ReadType(in.Inside(field)));
      text_ = types.empty() ? "None" : Quoted(types.front().dtype);
    } else if (field.number == kValueItems) {
      constexpr int kDeepest = 32;
      if (depth_ == kDeepest) return Error(ErrorCode::kCorrupt, "a value is nested too deep");
      PL_TRY_ASSIGN(Value item, ValueReader(depth_ + 1).Read(in.Inside(field)));
      items_.push_back(item.text == "NONE" ? "None" : std::move(item.text));
    }
    return {};
  }

  int depth_;
  uint64_t type_ = 0;
  std::string text_;
  std::vector<std::string> items_;
  std::optional<TensorType> tensor_;
};

}  // namespace

Result<std::vector<TensorType>> ReadType(MessageReader in) {
  uint64_t type = 0;
  std::vector<TensorType> parts;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number == kTypeData && field.is_number()) type = field.value;
    if (field.number == kTypeTensor && field.is_bytes()) {
      PL_TRY_ASSIGN(TensorType tensor, ReadTensorType(in.Inside(field)));
      parts.push_back(std::move(tensor));
    }
    if (field.number != kTypeSequence || !field.is_bytes()) continue;
    MessageReader sequence = in.Inside(field);
    while (!sequence.is_done()) {
      PL_TRY_ASSIGN(const Field part, sequence.Next());
      if (part.number != 1 || !part.is_bytes()) continue;
      PL_TRY_ASSIGN(TensorType element, ReadElement(sequence.Inside(part)));
      parts.push_back(std::move(element));
    }
  }
  if (parts.empty() && type != 0 && type != kNone) parts.push_back({DTypeName(type), std::nullopt});
  return parts;
}

Result<Value> ReadValue(MessageReader in) { return ValueReader(0).Read(in); }

namespace {

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

namespace plumbline::graph_ir {

namespace {

constexpr std::string_view kSubgraph = "subgraph @";
constexpr std::string_view kEnd = "}";
constexpr std::string_view kReturn = "Return(";
constexpr std::string_view kAttributes = "cnode_primal_attrs:";
constexpr std::string_view kForwardId = "forward_unique_id: \"";
constexpr std::string_view kUniqueIds[] = {"{unique_id: \"", " unique_id: \""};
constexpr std::string_view kOlderName = ": full_name_with_scope:";

std::string_view WithoutBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// What stands before the first of `marks`.
std::string_view Before(std::string_view text, std::string_view marks) {
  return text.substr(0, text.find_first_of(marks));
}

// "%5(CNode_12) = PrimFunc_Add(...": the names in it; nothing for other lines.
std::optional<Node> NodeIn(std::string_view line) {
  const std::string_view number = Before(line, "(");
  if (!line.starts_with('%') || !IsDigits(number.substr(1)) || number.size() == line.size()) {
    return std::nullopt;
  }
  // The name may hold brackets, but no blank.
  const std::string_view rest = line.substr(number.size() + 1);
  const size_t blank = std::min(rest.find_first_of(" ="), rest.size());
  const std::string_view name = rest.substr(0, blank);
  std::string_view value = WithoutBlanks(rest.substr(blank));
  if (!name.ends_with(')') || !value.starts_with('=')) return std::nullopt;
  value = WithoutBlanks(value.substr(1));
  const std::string_view op = Before(value, "(");
  if (op.empty() || op.size() == value.size()) return std::nullopt;
  return Node{number, name.substr(0, name.size() - 1), op, {}, {}, {}, {}, {}};
}

// The number behind `key`.
std::string_view IdBehind(std::string_view key, std::string_view text) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view number = Before(text.substr(at + key.size()), "\"");
  return IsDigits(number) ? number : std::string_view();
}

void TakeIds(std::string_view line, Node& node) {
  const size_t at = line.find(kAttributes);
  if (at == std::string_view::npos) return;
  const std::string_view attributes = line.substr(at + kAttributes.size());
  node.forward_unique_id = IdBehind(kForwardId, attributes);
  for (const std::string_view key : kUniqueIds) {
    if (node.unique_id.empty()) node.unique_id = IdBehind(key, attributes);
  }
}

// What a line says of the node's place among the scopes.
enum class Naming { kNone, kScope, kFullName };
Naming NamingOf(std::string_view line) {
  if (line.starts_with(kOlderName)) return Naming::kFullName;
  if (!line.starts_with('#')) return Naming::kNone;
  const std::string key = LowerCase(Before(WithoutBlanks(line.substr(1)), ":("));
  if (key.starts_with("full") && key.ends_with("scope")) return Naming::kFullName;
  return key == "scope" ? Naming::kScope : Naming::kNone;
}

// "Default/MatMul-op0" of "# Fullname with scope: (Default/MatMul-op0)".
std::string_view NameIn(std::string_view line) {
  const size_t colon = line.find(':', 1);
  const size_t first = line.find('(', colon), last = line.rfind(')');
  if (first == std::string_view::npos || last == std::string_view::npos || last < first) return {};
  return line.substr(first + 1, last - first - 1);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Graph> Run() {
    for (size_t at = 0; at < text_.size();) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      if (end == text_.size() && in_subgraph_) break;  // a cut line, which may hold half a name
      Line(text_.substr(at, end - at));
      at = end + 1;
    }
    graph_.is_cut = in_subgraph_;
    if (graph_.nodes.empty()) {
      return Error(ErrorCode::kCorrupt,
                   "holds no node (expected the text of a graph: lines \"%0(name) = Op(...)\" in "
                   "a subgraph)");
    }
    return std::move(graph_);
  }

 private:
  // What the lines of the open node are about.
  enum class Part { kNoNode, kHead, kNamed, kSource };

  void Line(std::string_view line) {
    const std::string_view content = WithoutBlanks(line);
    if (content.starts_with('%')) {
      if (auto node = NodeIn(content)) return Begin(*std::move(node), content);
    }
    if (content.starts_with(kSubgraph)) {
      subgraph_ = Before(content.substr(kSubgraph.size()), "( {");
      in_subgraph_ = true;
      part_ = Part::kNoNode;
    } else if (line.starts_with(kEnd) || content.starts_with(kReturn)) {
      if (line.starts_with(kEnd)) in_subgraph_ = false;
      part_ = Part::kNoNode;
    } else if (part_ == Part::kHead) {
      Head(content);
    } else if (part_ != Part::kNoNode) {
      Source(line, content);
    }
  }

  void Begin(Node node, std::string_view content) {
    node.subgraph = subgraph_;
    TakeIds(content, node);
    graph_.nodes.push_back(node);
    part_ = Part::kHead;
  }

  void Head(std::string_view content) {
    Node& node = graph_.nodes.back();
    const Naming naming = NamingOf(content);
    if (naming == Naming::kNone) return TakeIds(content, node);  // values may span lines
    if (naming == Naming::kFullName) node.full_name = NameIn(content);
    part_ = Part::kNamed;
  }

  void Source(std::string_view line, std::string_view content) {
    Node& node = graph_.nodes.back();
    if (!content.starts_with('#')) {
      part_ = Part::kNoNode;
      return;
    }
    if (part_ == Part::kNamed) {
      part_ = Part::kSource;
      node.source = line;
    } else {
      const auto size = static_cast<size_t>(line.data() + line.size() - node.source.data());
      node.source = {node.source.data(), size};
    }
  }

  std::string_view text_;
  Graph graph_;
  std::string_view subgraph_;
  bool in_subgraph_ = false;
  Part part_ = Part::kNoNode;
};

}  // namespace

Result<Graph> Parse(std::string_view text) { return Parser(text).Run(); }

std::vector<std::string_view> SourceLines(std::string_view source) {
  std::vector<std::string_view> lines;
  for (const std::string_view line : SplitAt(source, '\n')) {
    std::string_view content = WithoutBlanks(line);
    content.remove_prefix(std::min(content.find_first_not_of("# "), content.size()));
    while (content.ends_with('/')) content.remove_suffix(1);
    if (!content.empty()) lines.push_back(content);
  }
  return lines;
}

}  // namespace plumbline::graph_ir
