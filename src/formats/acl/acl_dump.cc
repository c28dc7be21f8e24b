#include "formats/acl/acl_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/file/file.h"
#include "base/memory/bytes.h"
#include "base/text/protobuf_wire.h"
#include "base/text/text_parts.h"

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

namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kLengthBytes = 8;
constexpr std::string_view kVersion2Name = "2.0";

Error Corrupt(std::string text) { return Error(ErrorCode::kCorrupt, std::move(text)); }

// The header of version 2 and of nano dumps, behind its length.
Result<Bytes> HeaderOf(Bytes bytes) {
  ByteReader in(bytes);
  PL_TRY_ASSIGN(const uint64_t length, in.ReadU64());
  if (length > in.remaining()) {
    return Corrupt(
        fmt::format("a header of {} bytes (expected at most {}). The file is cut, or no "
                    "device dump",
                    length, in.remaining()));
  }
  return in.ReadBytes(length);
}

// What holds its own data inside a message may leave out its size.
template <class Part>
void CompleteSizes(std::vector<Part>& parts) {
  for (Part& part : parts) {
    if (part.size == 0) part.size = part.data.size();
  }
}

template <class Part>
void Place(std::vector<Part>& parts, Bytes& rest) {
  for (Part& part : parts) {
    part.data = rest.first(std::min<uint64_t>(part.size, rest.size()));
    rest = rest.subspan(part.data.size());
  }
}

template <class Part>
std::optional<std::string> CutPart(const std::vector<Part>& parts, std::string_view name) {
  const auto found = std::ranges::find_if(parts, &Part::is_cut);
  if (found == parts.end()) return std::nullopt;
  return fmt::format("{} {}", name, found - parts.begin());
}

// Operator and time in the name of a nano dump's file.
Status NameNano(std::string_view name, Message& message) {
  constexpr size_t kParts = 5;
  const auto parts = SplitAt(name, '.');
  if (parts.size() < kParts) {
    return Corrupt(
        fmt::format("a file name of {} parts (expected at least {}, as "
                    "type.name.task.stream.time)",
                    parts.size(), kParts));
  }
  message.op_name = parts[1];
  message.dump_time = static_cast<uint64_t>(ParseNatural(parts[4]).value_or(0));
  return {};
}

}  // namespace

std::optional<Shape> KnownShape(const std::optional<Dims>& dims) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!dims || std::ranges::any_of(*dims, [](uint64_t size) { return size > kMost; })) {
    return std::nullopt;
  }
  return Shape(dims->begin(), dims->end());
}

Result<Elements> ElementsOf(const DumpedTensor& tensor) {
  if (tensor.is_cut()) {
    return Corrupt(fmt::format("the file is cut: {} bytes of elements (expected {})",
                               tensor.data.size(), tensor.size));
  }
  return Decode(tensor.data_type, KnownShape(tensor.shape), tensor.data);
}

void DumpFile::PlaceData(Bytes data) {
  Place(message_.inputs, data);
  Place(message_.outputs, data);
  Place(message_.buffers, data);
  Place(message_.spaces, data);
  surplus_bytes_ = data.size();
}

Result<DumpFile> DumpFile::ParseVersion2(Bytes bytes) {
  PL_TRY_ASSIGN(const Bytes header, HeaderOf(bytes));
  DumpFile file;
  PL_TRY_ASSIGN(file.message_, ReadMessage(header, kLengthBytes));
  file.PlaceData(bytes.subspan(kLengthBytes + header.size()));
  return file;
}

Result<DumpFile> DumpFile::ParseVersion1(Bytes bytes) {
  DumpFile file;
  file.container_ = Container::kVersion1;
  PL_TRY_ASSIGN(file.message_, ReadMessage(bytes, 0));
  CompleteSizes(file.message_.inputs);
  CompleteSizes(file.message_.outputs);
  CompleteSizes(file.message_.buffers);
  CompleteSizes(file.message_.spaces);
  return file;
}

Result<DumpFile> DumpFile::Parse(Bytes bytes) {
  if (bytes.size() <= kLengthBytes) {
    return Corrupt(bytes.empty() ? "the file is empty"
                                 : fmt::format("{} bytes (expected more than {}). The file is cut",
                                               bytes.size(), kLengthBytes));
  }
  if (LooksLikeNano(bytes)) return ParseNano(bytes);
  Result<DumpFile> file = ParseVersion2(bytes);
  if (file) return file;
  Result<DumpFile> version1 = ParseVersion1(bytes);
  const bool is_version1 =
      version1 && version1->message_.version != kVersion2Name && version1->message_.has_parts();
  return is_version1 ? std::move(version1) : std::move(file);
}

Result<DumpFile> DumpFile::OpenArray(const std::string& path) {
  PL_TRY_ASSIGN(npy::NpyFile array, npy::NpyFile::Open(path));
  DumpFile file;
  file.container_ = Container::kNpy;
  file.array_ = std::make_unique<npy::NpyFile>(std::move(array));
  TensorView view = file.array_->view();
  if (!view.is_contiguous()) {
    PL_TRY_ASSIGN(file.contiguous_, Tensor::Copy(view));
    view = file.contiguous_.view();
  }
  const std::optional<int32_t> code = CodeOfDType(view.dtype);
  if (!code) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: elements of type {} (expected one that devices have)", path,
                             InfoOf(view.dtype).name));
  }
  file.message_.version = kVersion2Name;
  DumpedTensor& output = file.message_.outputs.emplace_back();
  output.data_type = *code;
  output.format = DeviceFormat::kReserved;
  output.shape = Dims(view.sizes.begin(), view.sizes.end());
  output.data = {view.data, view.size_bytes()};
  output.size = output.data.size();
  return file;
}

Result<DumpFile> DumpFile::Open(const std::string& path, std::string_view name) {
  if (name.ends_with(".npy")) return OpenArray(path);
  PL_TRY_ASSIGN(FileBytes content, FileBytes::Open(path));
  Result<DumpFile> file = Parse(content.bytes());
  if (!file) return file.error().In(path);
  if (file->container_ == Container::kNano) {
    const Status named = NameNano(name, file->message_);
    if (!named) return named.error().In(path);
  }
  file->file_ = std::move(content);
  return file;
}

std::string DumpFile::FirstCutPart() const {
  std::optional<std::string> part = CutPart(message_.inputs, "input");
  if (!part) part = CutPart(message_.outputs, "output");
  if (!part) part = CutPart(message_.buffers, "buffer");
  if (!part) part = CutPart(message_.spaces, "space");
  return part.value_or("");
}

std::string MakeHeader(const Message& message) {
  const std::string text = WriteMessage(message);
  std::string header;
  AppendU64(text.size(), header);
  return header + text;
}

Status WriteDump(const std::string& path, const Message& message) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(file.Write(MakeHeader(message)));
  for (const DumpedTensor& one : message.inputs) PL_TRY(file.Write(one.data));
  for (const DumpedTensor& one : message.outputs) PL_TRY(file.Write(one.data));
  for (const DumpedBytes& one : message.buffers) PL_TRY(file.Write(one.data));
  for (const DumpedBytes& one : message.spaces) PL_TRY(file.Write(one.data));
  return file.Commit(/*durable=*/false);
}

// Nano dumps: binary records instead of a protobuf message.

namespace {

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
  PL_TRY(in.Skip(sizeof(kRecordMagic)));
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
  return magic && *magic == kRecordMagic && in.remaining() > 0;
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
