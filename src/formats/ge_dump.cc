#include "formats/ge_dump.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace plumbline::ge {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kLengthBytes = 8;

Error Corrupt(std::string text) { return Error(ErrorCode::kCorrupt, std::move(text)); }

std::optional<DType> DTypeOfCode(uint64_t code) {
  switch (code) {
    case 1:
      return DType::kFloat32;
    case 2:
      return DType::kFloat16;
    case 3:
    case 18:  // quantised ones are the plain integers
      return DType::kInt8;
    case 4:
    case 21:
      return DType::kUInt8;
    case 5:
    case 19:
      return DType::kInt16;
    case 6:
    case 22:
      return DType::kUInt16;
    case 7:
    case 20:
      return DType::kInt32;
    case 8:
    case 23:  // a resource handle
      return DType::kInt64;
    case 9:
      return DType::kUInt32;
    case 10:
      return DType::kUInt64;
    case 11:
      return DType::kBool;
    case 12:
      return DType::kFloat64;
    case 16:
      return DType::kComplex64;
    case 17:
      return DType::kComplex128;
    case 27:
      return DType::kBFloat16;
    case 34:
      return DType::kFloat8E5M2;
    case 35:
      return DType::kFloat8E4M3FN;
    default:
      return std::nullopt;
  }
}

// --- protobuf: fields of a message, of which the unknown ones are skipped
// -------------------------

struct Field {
  uint64_t number = 0;
  bool is_bytes = false;  // `bytes`; else `value`
  uint64_t value = 0;
  Bytes bytes;
};

class MessageReader {
 public:
  explicit MessageReader(Bytes bytes) : bytes_(bytes) {}
  [[nodiscard]] bool AtEnd() const { return bytes_.empty(); }
  Result<uint64_t> Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return Corrupt("the message ends inside a number");
      const auto byte = std::to_integer<uint64_t>(bytes_.front());
      bytes_ = bytes_.subspan(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return Corrupt("a number of more than ten bytes");
  }
  Result<Field> Next() {
    PL_TRY_ASSIGN(const uint64_t tag, Varint());
    Field field;
    field.number = tag >> 3;
    uint64_t skipped = 0;
    switch (tag & 7) {
      case 0: {
        PL_TRY_ASSIGN(field.value, Varint());
        return field;
      }
      case 1:
        skipped = 8;
        break;
      case 2: {
        PL_TRY_ASSIGN(skipped, Varint());
        field.is_bytes = true;
        break;
      }
      case 5:
        skipped = 4;
        break;
      default:
        return Corrupt(fmt::format("field {}: no known wire type ({})", field.number, tag & 7));
    }
    if (field.number == 0) return Corrupt("field 0: no message has it");
    if (skipped > bytes_.size()) {
      return Corrupt(fmt::format("field {}: {} bytes (expected at most {})", field.number, skipped,
                                 bytes_.size()));
    }
    field.bytes = bytes_.first(skipped);
    bytes_ = bytes_.subspan(skipped);
    return field;
  }

 private:
  Bytes bytes_;
};

// What a message says of one tensor.
struct Described {
  uint64_t dtype_code = 0;
  uint64_t size_bytes = 0;
  std::optional<Shape> sizes;  // none: unknown
};

// Numbers of the fields, which differ between OpInput and OpOutput.
struct Numbers {
  uint64_t size;
};
constexpr Numbers kOfInput{5}, kOfOutput{6};
constexpr uint64_t kDataType = 1, kShape = 3;  // of both
constexpr uint64_t kOutputs = 3, kInputs = 4;  // of DumpData

Status AddSize(uint64_t size, std::optional<Shape>& sizes) {
  if (!sizes) return {};
  if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    sizes.reset();  // the recorder did not know it
  } else {
    sizes->push_back(static_cast<int64_t>(size));
  }
  return {};
}

Result<std::optional<Shape>> SizesIn(Bytes message) {
  std::optional<Shape> sizes = Shape();
  MessageReader reader(message);
  while (!reader.AtEnd()) {
    PL_TRY_ASSIGN(const Field field, reader.Next());
    if (field.number != 1) continue;
    if (!field.is_bytes) PL_TRY(AddSize(field.value, sizes));
    MessageReader packed(field.is_bytes ? field.bytes : Bytes());
    while (!packed.AtEnd()) {
      PL_TRY_ASSIGN(const uint64_t size, packed.Varint());
      PL_TRY(AddSize(size, sizes));
    }
  }
  return sizes;
}

Result<Described> DescribedIn(Bytes message, const Numbers& numbers) {
  Described tensor;
  MessageReader reader(message);
  while (!reader.AtEnd()) {
    PL_TRY_ASSIGN(const Field field, reader.Next());
    if (field.number == kShape && field.is_bytes) {
      PL_TRY_ASSIGN(tensor.sizes, SizesIn(field.bytes));
    } else if (field.number == kDataType && !field.is_bytes) {
      tensor.dtype_code = field.value;
    } else if (field.number == numbers.size && !field.is_bytes) {
      tensor.size_bytes = field.value;
    }
  }
  return tensor;
}

}  // namespace

Result<DumpFile> DumpFile::Parse(Bytes bytes) {
  if (bytes.size() <= kLengthBytes) {
    return Corrupt(fmt::format("{} bytes (expected more than {}); the file may be cut",
                               bytes.size(), kLengthBytes));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes) {
    return Corrupt(
        fmt::format("a header of {} bytes (expected at most {}); the file may be cut, "
                    "or is no dump",
                    length, bytes.size() - kLengthBytes));
  }
  std::vector<Described> inputs, outputs;
  MessageReader reader(bytes.subspan(kLengthBytes, length));
  while (!reader.AtEnd()) {
    PL_TRY_ASSIGN(const Field field, reader.Next());
    if (!field.is_bytes) continue;
    if (field.number == kInputs) {
      PL_TRY_ASSIGN(inputs.emplace_back(), DescribedIn(field.bytes, kOfInput));
    } else if (field.number == kOutputs) {
      PL_TRY_ASSIGN(outputs.emplace_back(), DescribedIn(field.bytes, kOfOutput));
    }
  }
  Bytes rest = bytes.subspan(kLengthBytes + length);
  const auto place = [&rest](const Described& described) {
    DumpedTensor tensor;
    const size_t there = std::min<uint64_t>(described.size_bytes, rest.size());
    const Bytes data = rest.first(there);
    rest = rest.subspan(there);
    const std::optional<DType> dtype = DTypeOfCode(described.dtype_code);
    if (!dtype) {
      tensor.problem_ = fmt::format("data type {}: not supported", described.dtype_code);
      return tensor;
    }
    const size_t width = InfoOf(*dtype).size_bytes;
    tensor.dtype_ = *dtype;
    tensor.sizes_ =
        described.sizes.value_or(Shape{static_cast<int64_t>(described.size_bytes / width)});
    const Result<int64_t> count = ElementCount(tensor.sizes_);
    if (!count || static_cast<uint64_t>(*count) > data.size() / width) {
      tensor.problem_ = fmt::format("{} bytes of elements (expected {} of {}); the file may be cut",
                                    data.size(), count ? *count : -1, width);
      return tensor;
    }
    tensor.strides_ = ContiguousStrides(tensor.sizes_);
    tensor.data_ = data.data();
    if (reinterpret_cast<uintptr_t>(data.data()) % width != 0) {
      tensor.aligned_.assign(data.begin(),
                             data.begin() + *count * static_cast<std::ptrdiff_t>(width));
      tensor.data_ = tensor.aligned_.data();
    }
    return tensor;
  };
  DumpFile file;
  for (const Described& described : inputs) file.inputs_.push_back(place(described));
  for (const Described& described : outputs) file.outputs_.push_back(place(described));
  return file;
}

Result<DumpFile> DumpFile::Open(const std::string& path) {
  PL_TRY_ASSIGN(auto mapped, MappedFile::Open(path));
  Result<DumpFile> file = Parse(mapped->bytes());
  if (!file) return file.error().In(path);
  file->file_ = std::move(mapped);
  return file;
}

}  // namespace plumbline::ge
