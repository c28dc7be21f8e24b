#include "formats/graph_pb.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace plumbline::graph_pb {
namespace {

// Field numbers of MindSpore's messages.
constexpr uint64_t kModelGraph = 4;
constexpr uint64_t kGraphNode = 1, kGraphName = 2, kGraphParameter = 3, kGraphConstant = 5,
                   kGraphRoot = 6;
constexpr uint64_t kNodeInput = 1, kNodeName = 2, kNodeType = 3, kNodeFullName = 8, kNodeSource = 9;
constexpr uint64_t kFirst = 1;  // the name or key of inputs, parameters and constants

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t number = 0;
  Wire wire = Wire::kVarint;
  std::string_view bytes;  // of kBytes
};

// Reads the fields of one message.
class Message {
 public:
  Message(std::string_view text, size_t offset) : text_(text), offset_(offset) {}

  [[nodiscard]] bool is_done() const { return at_ == text_.size(); }

  Result<Field> Next() {
    PL_TRY_ASSIGN(const uint64_t tag, Varint());
    constexpr uint64_t kWireMask = 7;
    Field field{tag >> 3, static_cast<Wire>(tag & kWireMask), {}};
    switch (field.wire) {
      case Wire::kVarint:
        PL_TRY(Varint());
        return field;
      case Wire::kFixed64:
        PL_TRY(Take(8));
        return field;
      case Wire::kFixed32:
        PL_TRY(Take(4));
        return field;
      case Wire::kBytes: {
        PL_TRY_ASSIGN(const uint64_t size, Varint());
        PL_TRY_ASSIGN(field.bytes, Take(size));
        return field;
      }
    }
    return Bad("an unknown kind of field");
  }

  // The fields of a message inside this one, which `bytes` of a field of it are.
  [[nodiscard]] Message Inside(std::string_view bytes) const {
    return {bytes, offset_ + static_cast<size_t>(bytes.data() - text_.data())};
  }

 private:
  [[nodiscard]] Error Bad(std::string_view what) const {
    return Error(ErrorCode::kCorrupt, fmt::format("byte {}: {}", offset_ + at_, what));
  }

  Result<uint64_t> Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (is_done()) return Bad("the file is cut");
      const auto byte = static_cast<uint8_t>(text_[at_++]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return Bad("a number of more than 64 bits");
  }

  Result<std::string_view> Take(uint64_t size) {
    if (size > text_.size() - at_) return Bad("the file is cut");
    const std::string_view part = text_.substr(at_, static_cast<size_t>(size));
    at_ += part.size();
    return part;
  }

  std::string_view text_;
  size_t offset_;
  size_t at_ = 0;
};

// The text in the first field of a message: a name or a key.
Result<std::string> FirstText(Message in) {
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number == kFirst && field.wire == Wire::kBytes) return std::string(field.bytes);
  }
  return std::string();
}

Result<Node> ReadNode(Message in) {
  Node node;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.wire != Wire::kBytes) continue;
    if (field.number == kNodeInput) {
      PL_TRY_ASSIGN(std::string name, FirstText(in.Inside(field.bytes)));
      node.inputs.push_back(std::move(name));
    } else if (field.number == kNodeName) {
      node.name = field.bytes;
    } else if (field.number == kNodeType) {
      node.op_type = field.bytes;
    } else if (field.number == kNodeFullName) {
      node.full_name = field.bytes;
    } else if (field.number == kNodeSource) {
      node.source = field.bytes;
    }
  }
  return node;
}

Status ReadGraph(Message in, Graph& graph) {
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.wire != Wire::kBytes) continue;
    if (field.number == kGraphNode) {
      PL_TRY_ASSIGN(Node node, ReadNode(in.Inside(field.bytes)));
      graph.nodes.push_back(std::move(node));
    } else if (field.number == kGraphName) {
      graph.name = field.bytes;
    } else if (field.number == kGraphRoot) {
      graph.root_name = field.bytes;
    } else if (field.number == kGraphParameter || field.number == kGraphConstant) {
      PL_TRY_ASSIGN(std::string name, FirstText(in.Inside(field.bytes)));
      auto& names = field.number == kGraphParameter ? graph.parameters : graph.constants;
      names.push_back(std::move(name));
    }
  }
  return {};
}

Result<Graph> ParseText(std::string_view text) {
  Graph graph;
  Message in(text, 0);
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number != kModelGraph || field.wire != Wire::kBytes) continue;
    PL_TRY(ReadGraph(in.Inside(field.bytes), graph));
  }
  return graph;
}

}  // namespace

Result<Graph> Parse(std::span<const std::byte> bytes) {
  return ParseText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<Graph> Read(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  Result<Graph> graph = ParseText(text);
  if (!graph) return graph.error().In(path);
  return graph;
}

}  // namespace plumbline::graph_pb
