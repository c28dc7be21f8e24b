#include "formats/acl_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/text_parts.h"
#include "formats/acl_message.h"

namespace plumbline::acl {
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

}  // namespace plumbline::acl
