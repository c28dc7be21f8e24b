// Nano dumps: binary records instead of a protobuf message.

#include <fmt/format.h>

#include "base/bytes.h"
#include "formats/acl_dump.h"

namespace plumbline::acl {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kLengthBytes = 8;
constexpr uint32_t kMagic = 0x5a5a5a5a;
// Tags in the header, and in a record.
constexpr uint32_t kInputs = 4, kOutputs = 5;
constexpr uint32_t kShape = 0, kOriginalShape = 1, kOriginalName = 2;

Error Corrupt(const ByteReader& in, std::string_view what) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("nano dump, byte {} of its header: {}", in.offset(), what));
}

Result<int32_t> ReadI32(ByteReader& in) {
  PL_TRY_ASSIGN(const uint32_t value, in.ReadU32());
  return static_cast<int32_t>(value);
}

Result<Dims> ReadDims(Bytes bytes) {
  ByteReader in(bytes);
  if (bytes.size() % sizeof(uint64_t) != 0) return Corrupt(in, "a shape that ends inside a size");
  Dims dims;
  while (in.remaining() > 0) {
    PL_TRY_ASSIGN(dims.emplace_back(), in.ReadU64());
  }
  return dims;
}

// What follows the fixed part of a record.
Status ReadTail(ByteReader& header, DumpedTensor& tensor) {
  PL_TRY_ASSIGN(const uint32_t length, header.ReadU32());
  PL_TRY_ASSIGN(const Bytes tail, header.ReadBytes(length));
  ByteReader in(tail);
  while (in.remaining() > 0) {
    PL_TRY_ASSIGN(const uint32_t tag, in.ReadU32());
    PL_TRY_ASSIGN(const uint32_t size, in.ReadU32());
    PL_TRY_ASSIGN(const Bytes value, in.ReadBytes(size));
    if (tag == kShape) {
      PL_TRY_ASSIGN(tensor.shape, ReadDims(value));
    } else if (tag == kOriginalShape) {
      PL_TRY_ASSIGN(tensor.original_shape, ReadDims(value));
    } else if (tag == kOriginalName && tensor.original_op) {
      tensor.original_op->name = AsText(value);
    }
  }
  return {};
}

Result<DumpedTensor> ReadRecord(ByteReader& in, bool is_output) {
  DumpedTensor tensor;
  PL_TRY_ASSIGN(const int32_t nano_type, ReadI32(in));
  tensor.data_type = CodeOfNanoType(nano_type);
  PL_TRY_ASSIGN(const int32_t format, ReadI32(in));
  tensor.format = static_cast<DeviceFormat>(format);
  PL_TRY(in.Skip(sizeof(int32_t)));  // kind of the address
  if (is_output) {
    OriginalOp& op = tensor.original_op.emplace();
    PL_TRY_ASSIGN(op.output_index, in.ReadU32());
    PL_TRY_ASSIGN(const int32_t original_type, ReadI32(in));
    op.data_type = CodeOfNanoType(original_type);
    PL_TRY_ASSIGN(const int32_t original_format, ReadI32(in));
    op.format = static_cast<DeviceFormat>(original_format);
  }
  PL_TRY_ASSIGN(tensor.address, in.ReadU64());
  PL_TRY_ASSIGN(tensor.offset, in.ReadU64());
  PL_TRY_ASSIGN(tensor.size, in.ReadU64());
  PL_TRY(ReadTail(in, tensor));
  return tensor;
}

Status ReadRecords(Bytes value, bool is_output, std::vector<DumpedTensor>& tensors) {
  ByteReader in(value);
  PL_TRY_ASSIGN(const uint32_t count, in.ReadU32());
  for (uint32_t i = 0; i < count; ++i) {
    PL_TRY_ASSIGN(tensors.emplace_back(), ReadRecord(in, is_output));
  }
  if (in.remaining() > 0) return Corrupt(in, "bytes behind the last record");
  return {};
}

Result<Message> ReadHeader(Bytes header) {
  Message message;
  ByteReader in(header);
  PL_TRY(in.Skip(sizeof(kMagic)));
  PL_TRY_ASSIGN(const uint32_t version, in.ReadU32());
  message.version = fmt::to_string(version);
  while (in.remaining() > 0) {
    PL_TRY_ASSIGN(const uint32_t tag, in.ReadU32());
    PL_TRY_ASSIGN(const uint32_t length, in.ReadU32());
    PL_TRY_ASSIGN(const Bytes value, in.ReadBytes(length));
    if (tag == kInputs) {
      PL_TRY(ReadRecords(value, false, message.inputs));
    } else if (tag == kOutputs) {
      PL_TRY(ReadRecords(value, true, message.outputs));
    } else {
      return Corrupt(in, fmt::format("tag {} (expected {} or {})", tag, kInputs, kOutputs));
    }
  }
  return message;
}

}  // namespace

bool LooksLikeNano(Bytes bytes) {
  ByteReader in(bytes);
  if (!in.Skip(kLengthBytes)) return false;
  const Result<uint32_t> magic = in.ReadU32();
  return magic && *magic == kMagic && in.remaining() > 0;
}

Result<DumpFile> DumpFile::ParseNano(Bytes bytes) {
  ByteReader in(bytes);
  PL_TRY_ASSIGN(const uint64_t length, in.ReadU64());
  PL_TRY_ASSIGN(const Bytes header, in.ReadBytes(length));
  DumpFile file;
  file.container_ = Container::kNano;
  PL_TRY_ASSIGN(file.message_, ReadHeader(header));
  file.PlaceData(bytes.subspan(kLengthBytes + length));
  return file;
}

}  // namespace plumbline::acl
