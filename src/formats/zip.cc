#include "formats/zip.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/digest.h"

namespace plumbline::zip {
namespace {

// Record signatures and sizes, from PKWARE's APPNOTE.TXT 4.3.
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr size_t kLocalSize = 30, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr size_t kEntrySize = 46;
constexpr size_t kMaxComment = 65535;
// A field of this value stands in the ZIP64 record or extra field instead.
constexpr uint32_t kIn64 = 0xffffffff;
constexpr uint16_t kCountIn64 = 0xffff;
constexpr uint16_t kExtra64 = 0x0001;
// "FB": the padding field that PyTorch's own writer uses.
constexpr uint16_t kExtraPadding = 0x4246;
constexpr uint16_t kEncrypted = 0x0001;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kVersionPlain = 10, kVersion64 = 45;
constexpr uint16_t kFirstDate = 0x0021;  // 1980-01-01: output must not depend on the clock

struct End {
  uint64_t directory_offset = 0;
  uint64_t directory_bytes = 0;
  uint64_t count = 0;
};

// Offset of the end record: the last one whose comment reaches exactly to the end of the archive.
Result<size_t> FindEnd(std::span<const std::byte> archive) {
  // Looked for there alone: an archive may be of any size.
  const size_t tail = std::min(archive.size(), kEndSize + kMaxComment);
  const std::string_view text = AsText(archive.last(tail));
  for (size_t at = text.rfind("PK\5\6"); at != std::string_view::npos;
       at = text.rfind("PK\5\6", at - 1)) {
    if (text.size() - at >= kEndSize) {
      const size_t comment = static_cast<unsigned char>(text[at + 20]) |
                             static_cast<size_t>(static_cast<unsigned char>(text[at + 21])) << 8;
      if (at + kEndSize + comment == text.size()) return archive.size() - tail + at;
    }
    if (at == 0) break;
  }
  return Error(ErrorCode::kCorrupt,
               "no end of central directory (expected a complete zip archive). The file may have "
               "been cut off");
}

Result<End> ReadEnd64(std::span<const std::byte> archive, size_t end_offset) {
  if (end_offset < kLocator64Size) {
    return Error(ErrorCode::kCorrupt, "the ZIP64 locator is missing");
  }
  ByteReader in(archive);
  PL_TRY(in.Seek(end_offset - kLocator64Size));
  PL_TRY_ASSIGN(const uint32_t locator, in.ReadU32());
  PL_TRY(in.Skip(4));
  PL_TRY_ASSIGN(const uint64_t offset, in.ReadU64());
  if (locator != kLocator64Signature) {
    return Error(ErrorCode::kCorrupt, "the ZIP64 locator is missing");
  }
  PL_TRY(in.Seek(offset));
  PL_TRY_ASSIGN(const uint32_t signature, in.ReadU32());
  if (signature != kEnd64Signature) {
    return Error(ErrorCode::kCorrupt, "the ZIP64 end record is missing");
  }
  PL_TRY(in.Skip(20));
  End end;
  PL_TRY(in.Skip(8));
  PL_TRY_ASSIGN(end.count, in.ReadU64());
  PL_TRY_ASSIGN(end.directory_bytes, in.ReadU64());
  PL_TRY_ASSIGN(end.directory_offset, in.ReadU64());
  return end;
}

Result<End> ReadEnd(std::span<const std::byte> archive) {
  PL_TRY_ASSIGN(const size_t offset, FindEnd(archive));
  ByteReader in(archive);
  PL_TRY(in.Seek(offset + 10));
  End end;
  PL_TRY_ASSIGN(end.count, in.ReadU16());
  PL_TRY_ASSIGN(end.directory_bytes, in.ReadU32());
  PL_TRY_ASSIGN(end.directory_offset, in.ReadU32());
  if (end.count == kCountIn64 || end.directory_bytes == kIn64 || end.directory_offset == kIn64) {
    PL_TRY_ASSIGN(end, ReadEnd64(archive, offset));
  }
  if (end.directory_offset > offset || end.directory_bytes > offset - end.directory_offset) {
    return Error(ErrorCode::kCorrupt, "the central directory lies outside the archive");
  }
  return end;
}

// Replaces the fields that say so by the 64-bit values of the extra field, in this fixed order.
Status Read64(std::string_view extra, Member& member, uint64_t& packed, uint64_t& header_offset) {
  ByteReader in(std::as_bytes(std::span(extra)));
  while (in.remaining() >= 4) {
    PL_TRY_ASSIGN(const uint16_t id, in.ReadU16());
    PL_TRY_ASSIGN(const uint16_t size, in.ReadU16());
    if (id != kExtra64) {
      PL_TRY(in.Skip(size));
      continue;
    }
    for (uint64_t* field : {&member.size_bytes, &packed, &header_offset}) {
      if (*field != kIn64) continue;
      PL_TRY_ASSIGN(*field, in.ReadU64());
    }
    return {};
  }
  return {};
}

// One entry of the central directory. `header_offset` is where its local header stands.
Result<Member> ReadEntry(ByteReader& in, uint64_t& header_offset) {
  PL_TRY_ASSIGN(const uint32_t signature, in.ReadU32());
  if (signature != kEntrySignature) {
    return Error(ErrorCode::kCorrupt, "the central directory is damaged");
  }
  Member member;
  PL_TRY(in.Skip(4));
  PL_TRY_ASSIGN(const uint16_t flags, in.ReadU16());
  PL_TRY_ASSIGN(const uint16_t method, in.ReadU16());
  PL_TRY(in.Skip(4));
  PL_TRY_ASSIGN(member.crc32, in.ReadU32());
  PL_TRY_ASSIGN(uint64_t packed, in.ReadU32());
  PL_TRY_ASSIGN(member.size_bytes, in.ReadU32());
  PL_TRY_ASSIGN(const uint16_t name_size, in.ReadU16());
  PL_TRY_ASSIGN(const uint16_t extra_size, in.ReadU16());
  PL_TRY_ASSIGN(const uint16_t comment_size, in.ReadU16());
  PL_TRY(in.Skip(8));
  PL_TRY_ASSIGN(header_offset, in.ReadU32());
  PL_TRY_ASSIGN(member.name, in.ReadText(name_size));
  PL_TRY_ASSIGN(const std::string_view extra, in.ReadText(extra_size));
  PL_TRY(in.Skip(comment_size));
  PL_TRY(Read64(extra, member, packed, header_offset));
  member.is_stored = method == 0 && (flags & kEncrypted) == 0;
  member.is_deflated = method == kDeflated && (flags & kEncrypted) == 0;
  if (member.is_stored && packed != member.size_bytes) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: two sizes of one stored member ({} and {})",
                                                  member.name, packed, member.size_bytes));
  }
  // The range checks that follow must hold for what is really there.
  member.size_bytes = packed;
  return member;
}

// Finds the data behind the local header, whose lengths may differ from the directory's.
Status LocateData(std::span<const std::byte> archive, uint64_t header_offset, Member& member) {
  ByteReader in(archive);
  PL_TRY(in.Seek(header_offset));
  PL_TRY_ASSIGN(const uint32_t signature, in.ReadU32());
  if (signature != kLocalSignature) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: its local header is missing", member.name));
  }
  PL_TRY(in.Skip(22));
  PL_TRY_ASSIGN(const uint16_t name_size, in.ReadU16());
  PL_TRY_ASSIGN(const uint16_t extra_size, in.ReadU16());
  PL_TRY_ASSIGN(const std::string_view name, in.ReadText(name_size));
  PL_TRY(in.Skip(extra_size));
  if (name != member.name) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: its local header has another name", member.name));
  }
  member.data_offset = in.offset();
  return in.Skip(member.size_bytes);
}

Status CheckNoOverlap(const std::vector<Member>& members, uint64_t directory_offset) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Member& member : members) {
    // The header is at least this long and must not be anybody's data either.
    ranges.emplace_back(member.data_offset - kLocalSize - member.name.size(),
                        member.data_offset + member.size_bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;
  for (const auto& [begin, range_end] : ranges) {
    if (begin < end) return Error(ErrorCode::kCorrupt, "members of the archive overlap");
    end = range_end;
  }
  if (end > directory_offset) {
    return Error(ErrorCode::kCorrupt, "a member overlaps the central directory");
  }
  return {};
}

}  // namespace

Result<std::vector<Member>> ReadDirectory(std::span<const std::byte> archive) {
  PL_TRY_ASSIGN(const End end, ReadEnd(archive));
  if (end.count > end.directory_bytes / kEntrySize) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the central directory is too short for {} members", end.count));
  }
  ByteReader in(archive.first(static_cast<size_t>(end.directory_offset + end.directory_bytes)));
  PL_TRY(in.Seek(end.directory_offset));
  std::vector<Member> members;
  members.reserve(static_cast<size_t>(end.count));
  for (uint64_t i = 0; i < end.count; ++i) {
    uint64_t header_offset = 0;
    PL_TRY_ASSIGN(Member member, ReadEntry(in, header_offset));
    PL_TRY(LocateData(archive, header_offset, member));
    members.push_back(member);
  }
  PL_TRY(CheckNoOverlap(members, end.directory_offset));
  return members;
}

Result<std::span<const std::byte>> Data(std::span<const std::byte> archive, const Member& member,
                                        bool check) {
  if (!member.is_stored) {
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("{}: compressed or encrypted (expected a stored member)", member.name));
  }
  const auto data = archive.subspan(static_cast<size_t>(member.data_offset),
                                    static_cast<size_t>(member.size_bytes));
  if (check && Crc32(data) != member.crc32) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: checksum differs (expected {:08x}, got {:08x})", member.name,
                             member.crc32, Crc32(data)));
  }
  return data;
}

void Writer::Add(std::string_view name, std::string_view data) {
  BeginLast(name, data.size(), Crc32(std::as_bytes(std::span(data))), 1);
  text_ += data;
}

void Writer::BeginLast(std::string_view name, uint64_t size_bytes, uint32_t crc32,
                       uint64_t alignment) {
  const uint64_t header_offset = end_;
  const Member member{name, 0, size_bytes, crc32, true};
  const size_t before = text_.size();
  AppendHeader(member, header_offset, alignment);
  end_ += text_.size() - before + size_bytes;
  AppendEntry(member, header_offset);
  ++count_;
}

void Writer::AppendHeader(const Member& member, uint64_t header_offset, uint64_t alignment) {
  const bool large = member.size_bytes >= kIn64;
  const uint32_t size = large ? kIn64 : static_cast<uint32_t>(member.size_bytes);
  std::string extra;
  if (large) {
    AppendU16(kExtra64, extra);
    AppendU16(16, extra);
    AppendU64(member.size_bytes, extra);
    AppendU64(member.size_bytes, extra);
  }
  const uint64_t data = header_offset + kLocalSize + member.name.size() + extra.size();
  if (data % alignment != 0) {
    // The field itself takes four bytes.
    const uint64_t padding = (alignment - (data + 4) % alignment) % alignment;
    AppendU16(kExtraPadding, extra);
    AppendU16(static_cast<uint16_t>(padding), extra);
    extra.append(static_cast<size_t>(padding), 'Z');
  }
  AppendU32(kLocalSignature, text_);
  AppendU16(large ? kVersion64 : kVersionPlain, text_);
  AppendU16(0, text_);  // flags
  AppendU16(0, text_);  // method: stored
  AppendU16(0, text_);  // time
  AppendU16(kFirstDate, text_);
  AppendU32(member.crc32, text_);
  AppendU32(size, text_);
  AppendU32(size, text_);
  AppendU16(static_cast<uint16_t>(member.name.size()), text_);
  AppendU16(static_cast<uint16_t>(extra.size()), text_);
  text_ += member.name;
  text_ += extra;
}

void Writer::AppendEntry(const Member& member, uint64_t header_offset) {
  const bool large = member.size_bytes >= kIn64;
  const uint32_t size = large ? kIn64 : static_cast<uint32_t>(member.size_bytes);
  const bool far = header_offset >= kIn64;
  std::string extra;
  if (large || far) {
    AppendU16(kExtra64, extra);
    AppendU16(static_cast<uint16_t>((large ? 16 : 0) + (far ? 8 : 0)), extra);
    if (large) AppendU64(member.size_bytes, extra);
    if (large) AppendU64(member.size_bytes, extra);
    if (far) AppendU64(header_offset, extra);
  }
  const uint16_t version = large || far ? kVersion64 : kVersionPlain;
  AppendU32(kEntrySignature, directory_);
  AppendU16(version, directory_);
  AppendU16(version, directory_);
  AppendU16(0, directory_);  // flags
  AppendU16(0, directory_);  // method: stored
  AppendU16(0, directory_);  // time
  AppendU16(kFirstDate, directory_);
  AppendU32(member.crc32, directory_);
  AppendU32(size, directory_);
  AppendU32(size, directory_);
  AppendU16(static_cast<uint16_t>(member.name.size()), directory_);
  AppendU16(static_cast<uint16_t>(extra.size()), directory_);
  AppendU16(0, directory_);  // comment
  AppendU16(0, directory_);  // disk
  AppendU16(0, directory_);  // internal attributes
  AppendU32(0, directory_);  // external attributes
  AppendU32(far ? kIn64 : static_cast<uint32_t>(header_offset), directory_);
  directory_ += member.name;
  directory_ += extra;
}

std::string Writer::Directory() const {
  std::string out = directory_;
  const uint64_t bytes = directory_.size();
  if (end_ >= kIn64) {
    AppendU32(kEnd64Signature, out);
    AppendU64(kEnd64Size - 12, out);
    AppendU16(kVersion64, out);
    AppendU16(kVersion64, out);
    AppendU32(0, out);
    AppendU32(0, out);
    AppendU64(count_, out);
    AppendU64(count_, out);
    AppendU64(bytes, out);
    AppendU64(end_, out);
    AppendU32(kLocator64Signature, out);
    AppendU32(0, out);
    AppendU64(end_ + bytes, out);
    AppendU32(1, out);
  }
  AppendU32(kEndSignature, out);
  AppendU16(0, out);
  AppendU16(0, out);
  AppendU16(count_, out);
  AppendU16(count_, out);
  AppendU32(static_cast<uint32_t>(bytes), out);
  AppendU32(end_ >= kIn64 ? kIn64 : static_cast<uint32_t>(end_), out);
  AppendU16(0, out);
  return out;
}

}  // namespace plumbline::zip
