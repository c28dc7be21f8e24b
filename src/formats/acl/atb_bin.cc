#include "formats/acl/atb_bin.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text/text_parts.h"

namespace plumbline::atb {
namespace {

// The codes of aclDataType.
std::optional<DType> DTypeOfCode(int64_t code) {
  switch (code) {
    case 0:
      return DType::kFloat32;
    case 1:
      return DType::kFloat16;
    case 2:
      return DType::kInt8;
    case 3:
      return DType::kInt32;
    case 9:
      return DType::kInt64;
    case 12:
      return DType::kBool;
    case 27:
      return DType::kBFloat16;
    default:
      return std::nullopt;
  }
}

Error Corrupt(std::string text) { return Error(ErrorCode::kCorrupt, std::move(text)); }

Result<Shape> DimsIn(std::string_view text) {
  Shape sizes;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::optional<int64_t> size = ParseInteger(text.substr(0, comma));
    if (!size || *size < 0) return Corrupt(fmt::format("dims={}: no sizes", text));
    sizes.push_back(*size);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return sizes;
}

struct Header {
  std::optional<DType> dtype;
  Shape sizes;
  size_t end = 0;  // where the elements begin
};

Status TakeAttribute(std::string_view name, std::string_view value, Header& header) {
  if (name.starts_with('$')) return {};
  if (name == "dims") {
    PL_TRY_ASSIGN(header.sizes, DimsIn(value));
  } else if (name == "dtype" || name == "format") {
    const std::optional<int64_t> code = ParseInteger(value);
    if (!code) return Corrupt(fmt::format("{}={}: no number", name, value));
    if (name == "format") return {};
    header.dtype = DTypeOfCode(*code);
    if (!header.dtype) {
      return Error(ErrorCode::kUnsupported, fmt::format("dtype={}: an unknown type", *code));
    }
  } else if (name == "data") {
    return Error(ErrorCode::kUnsupported, "its elements are in another file");
  }
  return {};
}

Result<Header> ReadHeader(std::string_view text) {
  Header header;
  for (;;) {
    const size_t end = text.find('\n', header.end);
    if (end == std::string_view::npos) return Corrupt("no line $End=...; the file may be cut");
    const std::string_view line = text.substr(header.end, end - header.end);
    const size_t equals = line.find('=');
    const bool one = equals != std::string_view::npos && line.find('=', equals + 1) == line.npos;
    if (!one) return Corrupt(fmt::format("byte {}: no line name=value", header.end));
    header.end = end + 1;
    if (line.substr(0, equals) == "$End") break;
    PL_TRY(TakeAttribute(line.substr(0, equals), line.substr(equals + 1), header));
  }
  if (!header.dtype) return Corrupt("no line dtype=...");
  return header;
}

}  // namespace

bool IsBinFileName(std::string_view name) { return LowerCase(name).ends_with(".bin"); }

Result<BinFile> BinFile::Parse(std::span<const std::byte> bytes) {
  PL_TRY_ASSIGN(const Header header,
                ReadHeader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  PL_TRY_ASSIGN(const int64_t count, ElementCount(header.sizes));
  BinFile file;
  file.dtype_ = *header.dtype;
  file.sizes_ = header.sizes;
  file.strides_ = ContiguousStrides(file.sizes_);
  const size_t width = InfoOf(file.dtype_).size_bytes;
  const std::span<const std::byte> data = bytes.subspan(header.end);
  if (static_cast<uint64_t>(count) > data.size() / width) {
    return Corrupt(fmt::format("{} bytes of elements (expected {} of {}); the file may be cut",
                               data.size(), count, width));
  }
  file.data_ = data.data();
  if (reinterpret_cast<uintptr_t>(data.data()) % width == 0) return file;
  file.aligned_.assign(data.begin(), data.begin() + count * static_cast<std::ptrdiff_t>(width));
  file.data_ = file.aligned_.data();
  return file;
}

Result<BinFile> BinFile::Open(const std::string& path) {
  PL_TRY_ASSIGN(auto mapped, MappedFile::Open(path));
  Result<BinFile> file = Parse(mapped->bytes());
  if (!file) return file.error().In(path);
  file->file_ = std::move(mapped);
  return file;
}

}  // namespace plumbline::atb
