#include "online/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"

namespace plumbline::online {
namespace {

constexpr std::string_view kMagic = "PLOC";
constexpr size_t kCrcAt = kHeaderBytes - sizeof(uint32_t);
// What is read at once; a body grows with what has come, whatever its header says.
constexpr size_t kPieceBytes = size_t{4} << 20;

Error Damaged(std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("a frame of the online pre-check is damaged: {}", what)};
}

}  // namespace

std::array<std::byte, kHeaderBytes> EncodeHeader(const FrameHeader& header) {
  std::string text(kMagic);
  AppendU16(kFrameVersion, text);
  AppendU16(static_cast<uint16_t>(header.kind), text);
  AppendU64(header.body_bytes, text);
  AppendU64(header.session, text);
  AppendU64(header.sequence, text);
  AppendU64(static_cast<uint64_t>(header.step), text);
  AppendU32(static_cast<uint32_t>(header.rank), text);
  AppendU32(header.body_crc, text);
  AppendU64(header.dropped, text);
  AppendU32(0, text);
  AppendU32(Crc32c(BytesOf(text)), text);
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size()));
  return bytes;
}

Result<FrameHeader> ParseHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return Damaged("its header is cut");
  if (AsText(bytes.first(kMagic.size())) != kMagic) return Damaged("no frame begins there");
  ByteReader reader(bytes.first(kHeaderBytes));
  PL_TRY(reader.Skip(kMagic.size()));
  PL_TRY_ASSIGN(const uint16_t version, reader.ReadU16());
  if (version != kFrameVersion) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("the other side sends frames of version {} (expected {}). Use the same "
                             "release on both machines",
                             version, kFrameVersion));
  }
  FrameHeader header;
  PL_TRY_ASSIGN(const uint16_t kind, reader.ReadU16());
  header.kind = static_cast<FrameKind>(kind);
  PL_TRY_ASSIGN(header.body_bytes, reader.ReadU64());
  PL_TRY_ASSIGN(header.session, reader.ReadU64());
  PL_TRY_ASSIGN(header.sequence, reader.ReadU64());
  PL_TRY_ASSIGN(const uint64_t step, reader.ReadU64());
  header.step = static_cast<int64_t>(step);
  PL_TRY_ASSIGN(const uint32_t rank, reader.ReadU32());
  header.rank = static_cast<int32_t>(rank);
  PL_TRY_ASSIGN(header.body_crc, reader.ReadU32());
  PL_TRY_ASSIGN(header.dropped, reader.ReadU64());
  PL_TRY(reader.Skip(sizeof(uint32_t)));
  PL_TRY_ASSIGN(const uint32_t crc, reader.ReadU32());
  if (crc != Crc32c(bytes.first(kCrcAt))) return Damaged("its header has another checksum");
  const bool is_kind = kind >= static_cast<uint16_t>(FrameKind::kHello) &&
                       kind <= static_cast<uint16_t>(FrameKind::kRefusal);
  if (!is_kind) return Damaged(fmt::format("there is no kind {}", kind));
  if (header.body_bytes > kMostBodyBytes) return Damaged("its length is impossible");
  if (header.step < 0 || header.rank < 0) return Damaged("its step or rank is negative");
  return header;
}

std::string EncodeFrame(FrameHeader header, std::string_view body) {
  header.body_bytes = body.size();
  header.body_crc = Crc32c(BytesOf(body));
  const auto start = EncodeHeader(header);
  std::string frame(AsText(start));
  frame += body;
  frame.resize(FrameBytes(header), '\0');
  return frame;
}

std::string EncodeCredits(const Credits& credits) {
  std::string body;
  AppendU64(credits.records, body);
  AppendU64(credits.lost, body);
  return body;
}

Result<Credits> ParseCredits(std::span<const std::byte> body) {
  ByteReader reader(body);
  Credits credits;
  PL_TRY_ASSIGN(credits.records, reader.ReadU64());
  PL_TRY_ASSIGN(credits.lost, reader.ReadU64());
  return credits;
}

std::string EncodeRecordStart(std::span<const std::byte> packed,
                              std::span<const FrameTensor> tensors, uint64_t& body_bytes) {
  constexpr size_t kFixed = sizeof(uint16_t) + 2 + 2 * sizeof(uint64_t);
  uint64_t start_bytes = 2 * sizeof(uint32_t) + packed.size();
  for (const FrameTensor& tensor : tensors) {
    start_bytes += kFixed + tensor.name.size() + tensor.sizes.size() * sizeof(uint64_t);
  }
  std::string start;
  AppendU32(static_cast<uint32_t>(packed.size()), start);
  AppendU32(static_cast<uint32_t>(tensors.size()), start);
  start += AsText(packed);
  uint64_t offset = body_bytes = Padded(start_bytes);
  for (const FrameTensor& tensor : tensors) {
    AppendU16(static_cast<uint16_t>(tensor.name.size()), start);
    start += tensor.name;
    start += static_cast<char>(tensor.dtype);
    start += static_cast<char>(tensor.sizes.size());
    for (const int64_t size : tensor.sizes) AppendU64(static_cast<uint64_t>(size), start);
    AppendU64(offset, start);
    AppendU64(tensor.bytes.size(), start);
    body_bytes = offset + tensor.bytes.size();
    offset = Padded(body_bytes);
  }
  start.resize(Padded(start_bytes), '\0');
  return start;
}

Result<Record> ParseRecord(std::span<const std::byte> body) {
  ByteReader reader(body);
  PL_TRY_ASSIGN(const uint32_t packed_bytes, reader.ReadU32());
  PL_TRY_ASSIGN(const uint32_t count, reader.ReadU32());
  Record record;
  PL_TRY_ASSIGN(record.packed, reader.ReadBytes(packed_bytes));
  for (uint32_t i = 0; i < count; ++i) {
    FrameTensor tensor;
    PL_TRY_ASSIGN(const uint16_t name_bytes, reader.ReadU16());
    PL_TRY_ASSIGN(tensor.name, reader.ReadText(name_bytes));
    PL_TRY_ASSIGN(const uint8_t dtype, reader.ReadU8());
    if (dtype >= kDTypeCount) return Damaged("a tensor of an unknown type");
    tensor.dtype = static_cast<DType>(dtype);
    PL_TRY_ASSIGN(const uint8_t dimensions, reader.ReadU8());
    for (uint8_t k = 0; k < dimensions; ++k) {
      PL_TRY_ASSIGN(const uint64_t size, reader.ReadU64());
      tensor.sizes.push_back(static_cast<int64_t>(size));
    }
    PL_TRY_ASSIGN(const uint64_t offset, reader.ReadU64());
    PL_TRY_ASSIGN(const uint64_t bytes, reader.ReadU64());
    PL_TRY_ASSIGN(const int64_t elements, ElementCount(tensor.sizes));
    const bool is_inside = offset % kFrameAlignment == 0 && offset <= body.size() &&
                           bytes <= body.size() - offset;
    const uint64_t element_bytes = InfoOf(tensor.dtype).size_bytes;
    const bool is_whole = bytes / element_bytes == static_cast<uint64_t>(elements) &&
                          bytes % element_bytes == 0;
    if (!is_inside || !is_whole) return Damaged("a tensor does not lie in it");
    tensor.bytes = body.subspan(offset, bytes);
    record.tensors.push_back(std::move(tensor));
  }
  return record;
}

std::span<std::byte> FrameReader::Room() {
  if (begin_ > 0) {  // what is left of a frame under way
    std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
    filled_ -= std::exchange(begin_, 0);
  }
  if (buffer_.size() - filled_ < kPieceBytes / 4) buffer_.resize(filled_ + kPieceBytes);
  return std::span(buffer_).subspan(filled_);
}

Result<bool> FrameReader::Next(Frame& out) {
  const auto rest = std::span<const std::byte>(buffer_).subspan(begin_, filled_ - begin_);
  if (rest.size() < kHeaderBytes) return false;
  PL_TRY_ASSIGN(out.header, ParseHeader(rest.first(kHeaderBytes)));
  const uint64_t bytes = FrameBytes(out.header);
  if (rest.size() < bytes) return false;
  out.bytes.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(bytes));
  begin_ += bytes;
  if (Crc32c(out.body()) != out.header.body_crc) return Damaged("its body has another checksum");
  return true;
}

}  // namespace plumbline::online
