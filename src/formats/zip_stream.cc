#include "formats/zip_stream.h"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include <limits>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/file.h"

namespace plumbline::zip {
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
