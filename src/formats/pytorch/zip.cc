#include "formats/pytorch/zip.h"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/memory/bytes.h"
#include "base/memory/digest.h"

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

// zip::Extract(): contents of members, also of compressed ones.

namespace {

constexpr size_t kFirstBytes = size_t{64} << 10;

// Frees zlib's state whatever happens.
class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }  // raw deflate, no header
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  [[nodiscard]] bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
};

Error Damaged(const Member& member) {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: its compressed data is damaged", member.name));
}

Error TooLarge(const Member& member, uint64_t max_bytes) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: larger than {} bytes", member.name, max_bytes));
}

Result<std::string> Inflate(std::span<const std::byte> packed, const Member& member,
                            uint64_t max_bytes) {
  Inflater inflater;
  if (!inflater.ready()) return Error(ErrorCode::kInternal, "zlib cannot start");
  z_stream& stream = inflater.stream();
  // zlib counts in 32 bits: members of this size are no result tables.
  if (packed.size() > std::numeric_limits<uInt>::max()) return TooLarge(member, max_bytes);
  // zlib's interface is not const; it does not write there.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  for (size_t done = 0;; done = text.size() - stream.avail_out) {
    // Grows with what really comes out, not with what the archive promises.
    const uint64_t next = std::clamp<uint64_t>(text.size() * 2, kFirstBytes, max_bytes + 1);
    if (next <= text.size()) return TooLarge(member, max_bytes);
    text.resize(static_cast<size_t>(next));
    const size_t room = std::min<size_t>(text.size() - done, std::numeric_limits<uInt>::max());
    text.resize(done + room);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + done);
    stream.avail_out = static_cast<uInt>(room);
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code == Z_STREAM_END) break;
    if (code != Z_OK || stream.avail_out > 0) return Damaged(member);
  }
  text.resize(text.size() - stream.avail_out);
  if (text.size() > max_bytes) return TooLarge(member, max_bytes);
  return text;
}

}  // namespace

Result<std::string> Extract(std::span<const std::byte> archive, const Member& member,
                            uint64_t max_bytes) {
  const auto data = archive.subspan(static_cast<size_t>(member.data_offset),
                                    static_cast<size_t>(member.size_bytes));
  std::string text;
  if (member.is_deflated) {
    PL_TRY_ASSIGN(text, Inflate(data, member, max_bytes));
  } else if (member.is_stored) {
    if (data.size() > max_bytes) return TooLarge(member, max_bytes);
    text.assign(reinterpret_cast<const char*>(data.data()), data.size());
  } else {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: encrypted, or packed in a way other than deflate", member.name));
  }
  if (Crc32(std::as_bytes(std::span(text))) != member.crc32) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: its checksum differs", member.name));
  }
  return text;
}

namespace {

constexpr size_t kChunkBytes = size_t{1} << 18;
constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
// Numbers of the format (APPNOTE 6.3): signatures, version 2.0, sizes behind the data and names in
// UTF-8, deflate, 1980-01-01 so that equal contents are equal files.
constexpr uint32_t kLocal = 0x04034b50, kDescriptor = 0x08074b50, kCentral = 0x02014b50,
                   kEnd = 0x06054b50;
constexpr uint16_t kVersion = 20, kFlags = 0x0808, kDeflate = 8, kDate = 0x21;

void Append16(uint32_t value, std::string& out) {
  out += static_cast<char>(value & 0xFF);
  out += static_cast<char>((value >> 8) & 0xFF);
}
void Append32(uint32_t value, std::string& out) {
  Append16(value & 0xFFFF, out);
  Append16(value >> 16, out);
}

struct Entry {
  std::string name;
  uint32_t crc = 0;
  uint64_t offset = 0, packed_bytes = 0, bytes = 0;
};

}  // namespace

struct StreamWriter::Impl {
  AtomicFile file;
  std::string path;
  isal_zstream stream{};
  std::vector<uint8_t> level_buffer = std::vector<uint8_t>(ISAL_DEF_LVL1_DEFAULT);
  std::vector<uint8_t> packed = std::vector<uint8_t>(kChunkBytes);
  std::vector<Entry> entries;
  uint64_t offset = 0;  // in the archive
  bool open = false;    // a member is being written

  explicit Impl(AtomicFile temporary) : file(std::move(temporary)) {}

  Error TooBig() const {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: more than 4 GiB. Write csv or sqlite instead", path));
  }

  Status Put(std::string_view bytes) {
    offset += bytes.size();
    if (offset > kMost) return TooBig();
    return file.Write(bytes);
  }

  // Feeds what `stream` was given; all of it when `last`.
  Status Deflate(bool last) {
    stream.end_of_stream = last ? 1 : 0;
    do {
      stream.next_out = packed.data();
      stream.avail_out = static_cast<uint32_t>(packed.size());
      if (isal_deflate(&stream) != COMP_OK) {
        return Error(ErrorCode::kInternal, fmt::format("{}: cannot compress", path));
      }
      const size_t size = packed.size() - stream.avail_out;
      entries.back().packed_bytes += size;
      PL_TRY(Put({reinterpret_cast<const char*>(packed.data()), size}));
    } while (stream.avail_out == 0);
    return {};
  }

  Status EndMember() {
    if (!open) return {};
    open = false;
    stream.avail_in = 0;
    PL_TRY(Deflate(true));
    const Entry& entry = entries.back();
    if (entry.bytes > kMost) return TooBig();
    std::string text;
    Append32(kDescriptor, text);
    AppendSizes(entry, text);
    return Put(text);
  }

  static void AppendSizes(const Entry& entry, std::string& out) {
    Append32(entry.crc, out);
    Append32(static_cast<uint32_t>(entry.packed_bytes), out);
    Append32(static_cast<uint32_t>(entry.bytes), out);
  }

  static void AppendKind(std::string& out) {
    for (const uint16_t value : {kVersion, kFlags, kDeflate, uint16_t{0}, kDate}) {
      Append16(value, out);
    }
  }
};

StreamWriter::StreamWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StreamWriter::StreamWriter(StreamWriter&&) noexcept = default;
StreamWriter& StreamWriter::operator=(StreamWriter&&) noexcept = default;
StreamWriter::~StreamWriter() = default;

Result<StreamWriter> StreamWriter::Create(const std::string& path) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  auto impl = std::make_unique<Impl>(std::move(file));
  impl->path = path;
  return StreamWriter(std::move(impl));
}

Status StreamWriter::Begin(std::string_view name) {
  PL_TRY(impl_->EndMember());
  isal_deflate_init(&impl_->stream);
  impl_->stream.level = 1;
  impl_->stream.level_buf = impl_->level_buffer.data();
  impl_->stream.level_buf_size = static_cast<uint32_t>(impl_->level_buffer.size());
  impl_->open = true;
  Entry& entry = impl_->entries.emplace_back();
  entry.name = name;
  entry.offset = impl_->offset;
  std::string text;
  Append32(kLocal, text);
  Impl::AppendKind(text);
  Impl::AppendSizes(Entry(), text);
  Append16(static_cast<uint32_t>(name.size()), text);
  Append16(0, text);
  return impl_->Put(text += name);
}

Status StreamWriter::Write(std::string_view data) {
  Entry& entry = impl_->entries.back();
  entry.bytes += data.size();
  entry.crc = Crc32(std::as_bytes(std::span(data)), entry.crc);
  // igzip takes 32-bit sizes.
  while (!data.empty()) {
    const std::string_view chunk = data.substr(0, kChunkBytes);
    data.remove_prefix(chunk.size());
    impl_->stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(chunk.data()));
    impl_->stream.avail_in = static_cast<uint32_t>(chunk.size());
    PL_TRY(impl_->Deflate(false));
  }
  return {};
}

Status StreamWriter::Close() {
  PL_TRY(impl_->EndMember());
  const uint64_t start = impl_->offset;
  std::string text;
  for (const Entry& entry : impl_->entries) {
    Append32(kCentral, text);
    Append16(kVersion, text);
    Impl::AppendKind(text);
    Impl::AppendSizes(entry, text);
    Append16(static_cast<uint32_t>(entry.name.size()), text);
    // No extra field, comment, disk number or attributes.
    for (int i = 0; i < 6; ++i) Append16(0, text);
    Append32(static_cast<uint32_t>(entry.offset), text);
    text += entry.name;
  }
  const auto size = static_cast<uint32_t>(text.size());
  const auto count = static_cast<uint32_t>(impl_->entries.size());
  Append32(kEnd, text);
  Append32(0, text);
  Append16(count, text);
  Append16(count, text);
  Append32(size, text);
  Append32(static_cast<uint32_t>(start), text);
  Append16(0, text);
  PL_TRY(impl_->Put(text));
  return impl_->file.Commit(false);
}

uint64_t StreamWriter::member_bytes() const { return impl_->entries.back().bytes; }

}  // namespace plumbline::zip
