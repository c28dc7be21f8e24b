#include "formats/acl_message.h"

#include "base/protobuf_wire.h"

namespace plumbline::acl {
namespace {

using protobuf::Field;
using protobuf::MessageReader;
using protobuf::MessageWriter;

// Field numbers, by message.
namespace dump {
constexpr uint64_t kVersion = 1, kTime = 2, kOutput = 3, kInput = 4, kBuffer = 5, kOpName = 6,
                   kAttribute = 7, kSpace = 8;
}
namespace shape {
constexpr uint64_t kDim = 1;
}
namespace range {
constexpr uint64_t kStart = 1, kEnd = 2;
}
namespace original {
constexpr uint64_t kName = 1, kOutputIndex = 2, kDataType = 3, kFormat = 4;
}
namespace bytes {
constexpr uint64_t kType = 1, kData = 2, kSize = 3;
}
namespace attribute {
constexpr uint64_t kName = 1, kValue = 2;
}
// Inputs and outputs number the same fields in two ways; 0: a field that one of them lacks.
struct TensorFields {
  uint64_t data_type, format, shape, original_op, data, size, original_shape, sub_format, address,
      dim_range, offset;
};
constexpr TensorFields kOfInput{1, 2, 3, 0, 4, 5, 6, 7, 8, 0, 9};
constexpr TensorFields kOfOutput{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

int32_t AsEnum(uint64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }
// Negative ones take ten bytes, as protobuf writes them.
uint64_t FromEnum(int32_t value) { return static_cast<uint64_t>(int64_t{value}); }
DeviceFormat AsFormat(uint64_t value) { return static_cast<DeviceFormat>(AsEnum(value)); }
uint64_t FromFormat(DeviceFormat format) { return FromEnum(static_cast<int32_t>(format)); }

// Appends to `dims`: a shape that stands twice is one message in two parts.
Status ReadDims(MessageReader in, std::optional<Dims>& dims) {
  if (!dims) dims.emplace();
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number != shape::kDim) continue;
    if (field.is_number()) dims->push_back(field.value);
    if (!field.is_bytes()) continue;
    for (MessageReader packed = in.Inside(field); !packed.is_done();) {
      PL_TRY_ASSIGN(const uint64_t size, packed.Varint());
      dims->push_back(size);
    }
  }
  return {};
}

Result<DimRange> ReadRange(MessageReader in) {
  DimRange found;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (!field.is_number()) continue;
    if (field.number == range::kStart) found.start = field.value;
    if (field.number == range::kEnd) found.end = field.value;
  }
  return found;
}

Status ReadOriginal(MessageReader in, std::optional<OriginalOp>& op) {
  if (!op) op.emplace();
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.is_bytes() && field.number == original::kName) op->name = field.text();
    if (!field.is_number()) continue;
    if (field.number == original::kOutputIndex) {
      op->output_index = static_cast<uint32_t>(field.value);
    } else if (field.number == original::kDataType) {
      op->data_type = AsEnum(field.value);
    } else if (field.number == original::kFormat) {
      op->format = AsFormat(field.value);
    }
  }
  return {};
}

void TakeNumber(const Field& field, const TensorFields& fields, DumpedTensor& tensor) {
  if (field.number == fields.data_type) {
    tensor.data_type = AsEnum(field.value);
  } else if (field.number == fields.format) {
    tensor.format = AsFormat(field.value);
  } else if (field.number == fields.size) {
    tensor.size = field.value;
  } else if (field.number == fields.sub_format) {
    tensor.sub_format = AsEnum(field.value);
  } else if (field.number == fields.address) {
    tensor.address = field.value;
  } else if (field.number == fields.offset) {
    tensor.offset = field.value;
  }
}

Result<DumpedTensor> ReadTensor(MessageReader in, const TensorFields& fields) {
  DumpedTensor tensor;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.is_number()) TakeNumber(field, fields, tensor);
    if (!field.is_bytes()) continue;
    if (field.number == fields.shape) {
      PL_TRY(ReadDims(in.Inside(field), tensor.shape));
    } else if (field.number == fields.original_shape) {
      PL_TRY(ReadDims(in.Inside(field), tensor.original_shape));
    } else if (field.number == fields.data) {
      tensor.data = field.bytes;
    } else if (field.number == fields.original_op) {
      PL_TRY(ReadOriginal(in.Inside(field), tensor.original_op));
    } else if (field.number == fields.dim_range) {
      PL_TRY_ASSIGN(tensor.dim_ranges.emplace_back(), ReadRange(in.Inside(field)));
    }
  }
  return tensor;
}

Result<DumpedBytes> ReadBytes(MessageReader in) {
  DumpedBytes found;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.is_number() && field.number == bytes::kType) found.type = AsEnum(field.value);
    if (field.is_number() && field.number == bytes::kSize) found.size = field.value;
    if (field.is_bytes() && field.number == bytes::kData) found.data = field.bytes;
  }
  return found;
}

Result<Attribute> ReadAttribute(MessageReader in) {
  Attribute found;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (!field.is_bytes()) continue;
    if (field.number == attribute::kName) found.name = field.text();
    if (field.number == attribute::kValue) found.value = field.text();
  }
  return found;
}

Status TakeField(const Field& field, const MessageReader& in, Message& message) {
  if (field.is_number() && field.number == dump::kTime) message.dump_time = field.value;
  if (!field.is_bytes()) return {};
  switch (field.number) {
    case dump::kVersion:
      message.version = field.text();
      break;
    case dump::kOpName:
      message.op_name = field.text();
      break;
    case dump::kOutput: {
      PL_TRY_ASSIGN(message.outputs.emplace_back(), ReadTensor(in.Inside(field), kOfOutput));
      break;
    }
    case dump::kInput: {
      PL_TRY_ASSIGN(message.inputs.emplace_back(), ReadTensor(in.Inside(field), kOfInput));
      break;
    }
    case dump::kBuffer: {
      PL_TRY_ASSIGN(message.buffers.emplace_back(), ReadBytes(in.Inside(field)));
      break;
    }
    case dump::kSpace: {
      PL_TRY_ASSIGN(message.spaces.emplace_back(), ReadBytes(in.Inside(field)));
      break;
    }
    case dump::kAttribute: {
      PL_TRY_ASSIGN(message.attributes.emplace_back(), ReadAttribute(in.Inside(field)));
      break;
    }
    default:
      break;
  }
  return {};
}

void WriteDims(uint64_t number, const std::optional<Dims>& dims, MessageWriter& out) {
  if (!dims) return;
  MessageWriter inner;
  inner.AddPacked(shape::kDim, *dims);
  out.AddMessage(number, inner.text());
}

std::string WriteOriginal(const OriginalOp& op) {
  MessageWriter out;
  out.AddBytes(original::kName, op.name);
  out.AddNumber(original::kOutputIndex, op.output_index);
  out.AddNumber(original::kDataType, FromEnum(op.data_type));
  out.AddNumber(original::kFormat, FromFormat(op.format));
  return out.text();
}

std::string WriteTensor(const DumpedTensor& tensor, const TensorFields& fields) {
  MessageWriter out;
  out.AddNumber(fields.data_type, FromEnum(tensor.data_type));
  out.AddNumber(fields.format, FromFormat(tensor.format));
  WriteDims(fields.shape, tensor.shape, out);
  if (tensor.original_op && fields.original_op != 0) {
    out.AddMessage(fields.original_op, WriteOriginal(*tensor.original_op));
  }
  out.AddNumber(fields.size, tensor.data.size());
  WriteDims(fields.original_shape, tensor.original_shape, out);
  out.AddNumber(fields.sub_format, FromEnum(tensor.sub_format));
  out.AddNumber(fields.address, tensor.address);
  for (const DimRange& one : tensor.dim_ranges) {
    if (fields.dim_range == 0) break;
    MessageWriter inner;
    inner.AddNumber(range::kStart, one.start);
    inner.AddNumber(range::kEnd, one.end);
    out.AddMessage(fields.dim_range, inner.text());
  }
  out.AddNumber(fields.offset, tensor.offset);
  return out.text();
}

std::string WriteBytes(const DumpedBytes& part) {
  MessageWriter out;
  out.AddNumber(bytes::kType, FromEnum(part.type));
  out.AddNumber(bytes::kSize, part.data.size());
  return out.text();
}

}  // namespace

Result<Message> ReadMessage(std::span<const std::byte> text, size_t offset) {
  Message message;
  MessageReader in(text, offset);
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    PL_TRY(TakeField(field, in, message));
  }
  return message;
}

std::string WriteMessage(const Message& message) {
  MessageWriter out;
  out.AddBytes(dump::kVersion, message.version);
  out.AddNumber(dump::kTime, message.dump_time);
  for (const DumpedTensor& one : message.outputs) {
    out.AddMessage(dump::kOutput, WriteTensor(one, kOfOutput));
  }
  for (const DumpedTensor& one : message.inputs) {
    out.AddMessage(dump::kInput, WriteTensor(one, kOfInput));
  }
  for (const DumpedBytes& one : message.buffers) out.AddMessage(dump::kBuffer, WriteBytes(one));
  out.AddBytes(dump::kOpName, message.op_name);
  for (const Attribute& one : message.attributes) {
    MessageWriter inner;
    inner.AddBytes(attribute::kName, one.name);
    inner.AddBytes(attribute::kValue, one.value);
    out.AddMessage(dump::kAttribute, inner.text());
  }
  for (const DumpedBytes& one : message.spaces) out.AddMessage(dump::kSpace, WriteBytes(one));
  return out.text();
}

}  // namespace plumbline::acl
