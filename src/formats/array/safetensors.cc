#include "formats/array/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/memory/bytes.h"
#include "base/text/json.h"

namespace plumbline::safetensors {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the reference implementation
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeName {
  std::string_view name;
  DType dtype;
};

constexpr std::array<DTypeName, 16> kDTypes = {{
    {"BOOL", DType::kBool},
    {"U8", DType::kUInt8},
    {"I8", DType::kInt8},
    {"U16", DType::kUInt16},
    {"I16", DType::kInt16},
    {"U32", DType::kUInt32},
    {"I32", DType::kInt32},
    {"U64", DType::kUInt64},
    {"I64", DType::kInt64},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"F32", DType::kFloat32},
    {"F64", DType::kFloat64},
    {"C64", DType::kComplex64},
    {"F8_E4M3", DType::kFloat8E4M3FN},
    {"F8_E5M2", DType::kFloat8E5M2},
}};

std::optional<DType> DTypeNamed(std::string_view name) {
  for (const DTypeName& known : kDTypes) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

Error Damaged(std::string_view name, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("header, \"{}\": {}", name, what));
}

// Non-negative integers of a JSON list.
bool ReadNumbers(json::Reader& in, std::vector<int64_t>& out) {
  if (!in.EnterArray()) return false;
  while (in.NextElement()) {
    json::Number number;
    if (!in.ReadNumber(number)) return false;
    const auto* value = std::get_if<int64_t>(&number);
    if (value == nullptr || *value < 0) return false;
    out.push_back(*value);
  }
  return !in.failed();
}

// {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
Status ReadEntry(json::Reader& in, StoredTensor& tensor) {
  std::vector<int64_t> offsets;
  std::string dtype;
  bool has_shape = false;
  if (!in.EnterObject()) return in.error().In("header");
  std::string_view key;
  while (in.NextMember(key)) {
    bool good = true;
    if (key == "dtype") {
      std::string_view text;
      good = in.ReadString(text);
      dtype = text;
    } else if (key == "shape") {
      has_shape = good = ReadNumbers(in, tensor.sizes);
    } else if (key == "data_offsets") {
      good = ReadNumbers(in, offsets);
    } else {
      good = in.SkipValue();
    }
    if (in.failed()) return in.error().In("header");
    if (!good) return Damaged(tensor.name, "a number that is no length");
  }
  if (in.failed()) return in.error().In("header");
  if (dtype.empty() || !has_shape || offsets.size() != 2 || offsets[0] > offsets[1]) {
    return Damaged(tensor.name, "expected dtype, shape and two data_offsets in order");
  }
  tensor.begin = static_cast<uint64_t>(offsets[0]);
  tensor.end = static_cast<uint64_t>(offsets[1]);
  const std::optional<DType> known = DTypeNamed(dtype);
  PL_TRY_ASSIGN(const int64_t count, ElementCount(tensor.sizes));
  if (!known) {
    tensor.problem = fmt::format("elements of type {}, which is not read", dtype);
    return {};
  }
  tensor.dtype = *known;
  const uint64_t bytes = tensor.end - tensor.begin;
  const uint64_t size = InfoOf(tensor.dtype).size_bytes;
  if (bytes % size == 0 && bytes / size == static_cast<uint64_t>(count)) return {};
  return Damaged(tensor.name,
                 fmt::format("{} bytes of data for {} elements of {} bytes", bytes, count, size));
}

Result<std::vector<StoredTensor>> ReadHeader(std::string_view text) {
  std::vector<StoredTensor> tensors;
  std::unordered_set<std::string> names;
  json::Reader in(text);
  if (!in.EnterObject()) return in.error().In("header");
  std::string_view key;
  while (in.NextMember(key)) {
    if (key == kMetadata) {
      if (!in.SkipValue()) return in.error().In("header");
      continue;
    }
    StoredTensor& tensor = tensors.emplace_back();
    tensor.name = key;
    if (!names.insert(tensor.name).second) return Damaged(tensor.name, "stands there twice");
    PL_TRY(ReadEntry(in, tensor));
  }
  if (in.failed() || !in.ReadEnd()) return in.error().In("header");
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  return tensors;
}

}  // namespace

Status SafetensorsFile::CheckRanges() const {
  uint64_t at = 0;
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.begin != at) {
      return Damaged(tensor.name, fmt::format("its data {} (expected to begin at {}, got {})",
                                              tensor.begin < at ? "overlaps other data"
                                                                : "leaves a gap before it",
                                              at, tensor.begin));
    }
    at = tensor.end;
    if (at > data_.size()) {
      return Damaged(tensor.name, fmt::format("its data ends behind the file (expected at most {} "
                                              "bytes, got {}). Copy the file again.",
                                              data_.size(), at));
    }
  }
  if (at == data_.size()) return {};
  return Error(ErrorCode::kCorrupt, fmt::format("{} bytes belong to no tensor", data_.size() - at));
}

Result<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  PL_TRY_ASSIGN(const uint64_t header_bytes, in.ReadU64());
  if (header_bytes > kMaxHeaderBytes || header_bytes > in.remaining()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("a header of {} bytes in a file of {} (expected at most {}); no "
                             ".safetensors file, or cut",
                             header_bytes, bytes.size(),
                             std::min<uint64_t>(kMaxHeaderBytes, in.remaining())));
  }
  PL_TRY_ASSIGN(const std::string_view header, in.ReadText(header_bytes));
  SafetensorsFile file;
  PL_TRY_ASSIGN(file.tensors_, ReadHeader(header));
  file.data_ = bytes.subspan(in.offset());
  PL_TRY(file.CheckRanges());
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  PL_TRY_ASSIGN(auto mapped, MappedFile::Open(path));
  auto file = Parse(mapped->bytes());
  if (!file) return file.error().In(path);
  file->file_ = std::move(mapped);
  return file;
}

}  // namespace plumbline::safetensors
