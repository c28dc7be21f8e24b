#include "formats/array/mindspore_ckpt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/memory/digest.h"
#include "base/text/protobuf_wire.h"
#include "base/text/text_parts.h"

namespace plumbline::mindspore_ckpt {
namespace {

using protobuf::Field;
using protobuf::MessageReader;

// Field numbers of MindSpore's messages Checkpoint, Checkpoint.Value and TensorProto.
constexpr uint64_t kValue = 1;
constexpr uint64_t kTag = 1, kTensor = 2, kMapTensor = 3;
constexpr uint64_t kDims = 1, kType = 2, kContent = 3;
constexpr std::byte kFirstByte{kValue << 3U | 2U};

// Behind the messages, if the file was saved with crc_check: this and the CRC-32 of what is before
// it, big-endian in 10 bytes.
constexpr std::string_view kChecksumMark = "crc_num";
constexpr size_t kChecksumBytes = 10;
constexpr size_t kMostDimensions = 64;

struct Part {
  std::string_view tag;
  std::string_view type;
  Shape sizes;
  std::span<const std::byte> content;
  bool is_map = false;
};

Error Corrupt(std::string_view tag, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("\"{}\": {}", ReplaceInvalidUtf8(tag), what));
}

// One number, or several packed ones.
Status ReadDims(const MessageReader& in, const Field& field, Shape& sizes) {
  if (field.is_number()) sizes.push_back(static_cast<int64_t>(field.value));
  if (!field.is_bytes()) return {};
  MessageReader packed = in.Inside(field);
  while (!packed.is_done() && sizes.size() <= kMostDimensions) {
    PL_TRY_ASSIGN(const uint64_t size, packed.Varint());
    sizes.push_back(static_cast<int64_t>(size));
  }
  return {};
}

Status ReadTensor(MessageReader in, Part& part) {
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number == kDims) PL_TRY(ReadDims(in, field, part.sizes));
    if (field.number == kType && field.is_bytes()) part.type = field.text();
    if (field.number == kContent && field.is_bytes()) part.content = field.bytes;
    if (part.sizes.size() > kMostDimensions) return Corrupt(part.tag, "too many dimensions");
  }
  return {};
}

Result<Part> ReadValue(MessageReader in) {
  Part part;
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (!field.is_bytes()) continue;
    if (field.number == kTag) part.tag = field.text();
    if (field.number == kTensor) PL_TRY(ReadTensor(in.Inside(field), part));
    if (field.number == kMapTensor) part.is_map = true;
  }
  return part;
}

// A NumPy text: code points of 32 bits.
std::string TextOf(std::span<const std::byte> content) {
  std::string text;
  for (size_t i = 0; i + sizeof(uint32_t) <= content.size(); i += sizeof(uint32_t)) {
    uint32_t code_point = 0;
    std::memcpy(&code_point, content.data() + i, sizeof(code_point));
    if (code_point == 0) break;
    AppendUtf8(code_point, text);
  }
  return text;
}

// Takes off the checksum at the end, if there is one.
Result<std::span<const std::byte>> Messages(std::span<const std::byte> bytes, bool* is_checked) {
  constexpr size_t kTail = kChecksumMark.size() + kChecksumBytes;
  if (bytes.size() < kTail) return bytes;
  const std::span<const std::byte> tail = bytes.last(kTail);
  if (std::memcmp(tail.data(), kChecksumMark.data(), kChecksumMark.size()) != 0) return bytes;
  const auto messages = bytes.first(bytes.size() - kTail);
  uint64_t left = Crc32(messages);
  for (size_t i = kTail; i-- > kChecksumMark.size(); left >>= 8U) {
    *is_checked &= std::to_integer<uint64_t>(tail[i]) == (left & 0xFFU);
  }
  return messages;
}

Status CheckRuns(StoredTensor& tensor) {
  if (!tensor.problem.empty()) return {};
  const size_t element = InfoOf(tensor.dtype).size_bytes;
  size_t bytes = 0;
  for (const auto run : tensor.runs) {
    if (run.size() % element != 0) return Corrupt(tensor.name, "half an element");
    bytes += run.size();
  }
  // A scalar is saved with the one size 0.
  if (tensor.sizes == Shape{0} && bytes > 0) tensor.sizes.clear();
  const Result<int64_t> count = ElementCount(tensor.sizes);
  if (!count || static_cast<uint64_t>(*count) != bytes / element) {
    return Corrupt(tensor.name, fmt::format("{} elements do not make up the shape [{}]",
                                            bytes / element, fmt::join(tensor.sizes, ", ")));
  }
  return {};
}

}  // namespace

bool CkptFile::LooksLikeOne(std::span<const std::byte> bytes) {
  return !bytes.empty() && bytes.front() == kFirstByte;
}

Result<CkptFile> CkptFile::Open(const std::string& path) {
  PL_TRY_ASSIGN(auto file, MappedFile::Open(path));
  Result<CkptFile> parsed = Parse(file->bytes());
  if (!parsed) return parsed.error().In(path);
  parsed->file_ = std::move(file);
  return parsed;
}

Result<CkptFile> CkptFile::Parse(std::span<const std::byte> bytes) {
  CkptFile file;
  bool is_checked = true;
  PL_TRY_ASSIGN(const auto messages, Messages(bytes, &is_checked));
  MessageReader in(messages);
  std::string_view open;  // the name of the tensor whose parts may still follow
  while (!in.is_done()) {
    PL_TRY_ASSIGN(const Field field, in.Next());
    if (field.number != kValue || !field.is_bytes()) {
      return Error(ErrorCode::kCorrupt, "no checkpoint of MindSpore, or an encrypted one");
    }
    PL_TRY_ASSIGN(const Part part, ReadValue(in.Inside(field)));
    const bool is_tensor = !part.is_map && part.type != "str";
    // Parts of a large tensor follow each other under its name.
    const bool goes_on = is_tensor && !open.empty() && open == part.tag;
    open = is_tensor ? part.tag : std::string_view();
    if (part.is_map) {
      ++file.left_out_;
    } else if (!is_tensor) {
      file.texts_.push_back({std::string(part.tag), TextOf(part.content)});
    } else if (goes_on) {
      file.tensors_.back().runs.push_back(part.content);
    } else {
      const std::optional<DType> dtype = ParseDType(part.type);
      file.tensors_.push_back({.name = std::string(part.tag),
                               .dtype = dtype.value_or(DType::kUInt8),
                               .sizes = part.sizes,
                               .runs = {part.content},
                               .problem = {}});
      if (!dtype) {
        file.tensors_.back().problem =
            fmt::format("element type {}", ReplaceInvalidUtf8(part.type));
      }
    }
  }
  // The checksum leaves hash tables out.
  if (!is_checked && file.left_out_ == 0) {
    return Error(ErrorCode::kCorrupt,
                 "its bytes do not have their recorded checksum. Copy the file again");
  }
  for (StoredTensor& tensor : file.tensors_) PL_TRY(CheckRuns(tensor));
  return file;
}

}  // namespace plumbline::mindspore_ckpt
