#include "formats/graph_pb_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/number_text.h"

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

}  // namespace plumbline::graph_pb
